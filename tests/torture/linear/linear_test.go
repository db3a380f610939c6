// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const doc = "notebooks/shared/r0-0"

// The last line of a feed and of a journal.
const ending = "{\"type\":\"end\",\"whole\":true}\n"

// put writes one file of a history.
func put(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// write makes a folder with one client's lines a string, the feed of the given changes, and a journal without memories.
func write(t *testing.T, clients []string, feeds ...string) string {
	folder := t.TempDir()
	for i, text := range clients {
		put(t, folder, fmt.Sprintf("history-%02d.jsonl", i), text)
	}
	for i, text := range feeds {
		put(t, folder, fmt.Sprintf("feed-%d.jsonl", i), text+ending)
	}
	put(t, folder, "journal.jsonl", ending)
	return folder
}

// op is an operation from `call` to `back`, both small numbers, with the members of its two lines.
func op(process, number, call, back int, invoke, outcome string) string {
	where := fmt.Sprintf(`"process":%d,"number":%d`, process, number)
	return fmt.Sprintf("{\"type\":\"invoke\",%s,\"time\":%d,%s}\n{%s,\"time\":%d,%s}\n", where, call, invoke, where, back, outcome)
}

func on(function, members string) string {
	return fmt.Sprintf(`"function":%q,"documents":[%q]%s`, function, doc, members)
}

func create(token string) string  { return on("create", `,"expected":0,"token":"`+token+`"`) }
func appends(token string) string { return on("append", `,"token":"`+token+`"`) }
func guarded(token string, expected int) string {
	return on("append", fmt.Sprintf(`,"token":%q,"expected":%d`, token, expected))
}
func ok(revision int) string { return fmt.Sprintf(`"type":"ok","revision":%d`, revision) }
func read(revision int, text string) string {
	return fmt.Sprintf(`"type":"ok","revision":%d,"result":%q`, revision, text)
}
func refusedAt(current int) string {
	return fmt.Sprintf(`"type":"fail","error":"CONFLICT","current":%d`, current)
}

const unknown = `"type":"unknown","error":"GONE"`

func told(seq, revision, process int) string {
	return fmt.Sprintf("{\"type\":\"event\",\"seq\":%d,\"document\":%q,\"revision\":%d,\"agent\":\"client-%d\"}\n", seq, doc, revision, process)
}

// says checks a history: `want` is a part of the only problem, empty for none.
func says(t *testing.T, want string, folder string) {
	t.Helper()
	problems, err := run(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want == "" && len(problems) > 0 {
		t.Fatalf("problems in a right history: %v", problems)
	}
	if want != "" && !strings.Contains(strings.Join(problems, "\n"), want) {
		t.Fatalf("%q is not in %v", want, problems)
	}
}

func TestRightHistories(t *testing.T) {
	feed := told(5, 1, 0) + told(7, 2, 1)
	for name, clients := range map[string][]string{
		"one after the other": {
			op(0, 1, 1, 2, create("a"), ok(1)) + op(0, 2, 9, 10, on("read", ""), read(2, `a`+"\n"+`b`)),
			op(1, 1, 3, 4, appends("b"), ok(2)),
		},
		"a guard refused by a change that overlaps": {
			op(0, 1, 1, 2, create("a"), ok(1)) + op(0, 2, 3, 6, guarded("c", 1), refusedAt(2)) + op(0, 3, 9, 10, on("read", ""), read(2, "a\nb")),
			op(1, 1, 4, 5, appends("b"), ok(2)),
		},
		"an unknown change that happened": {
			op(0, 1, 1, 2, create("a"), ok(1)) + op(0, 2, 9, 10, on("read", ""), read(2, "a\nb")),
			op(1, 1, 3, 4, appends("b"), unknown),
		},
		"an unknown change that did not happen": {
			op(0, 1, 1, 2, create("a"), ok(1)) + op(0, 2, 9, 10, on("read", ""), read(2, "a\nb")),
			op(1, 1, 3, 4, appends("b"), ok(2)) + op(1, 2, 5, 6, appends("z"), unknown),
		},
	} {
		t.Run(name, func(t *testing.T) { says(t, "", write(t, clients, feed, feed)) })
	}
}

func TestWrongHistories(t *testing.T) {
	feed := told(5, 1, 0) + told(7, 2, 1)
	final := op(0, 9, 90, 91, on("read", ""), read(2, "a\nb"))
	begin := op(0, 1, 1, 2, create("a"), ok(1))
	second := op(1, 1, 3, 4, appends("b"), ok(2))
	for name, clients := range map[string][]string{
		"lost":   {begin + op(0, 9, 90, 91, on("read", ""), read(1, "a")), second},
		"double": {begin + op(0, 9, 90, 91, on("read", ""), read(3, "a\nb\nb")), second},
		"stale":  {begin + op(0, 2, 5, 6, on("read", ""), read(1, "a")) + final, second},
		"a guard refused by a revision that was replaced": {begin + op(0, 2, 5, 6, guarded("c", 2), refusedAt(1)) + final, second},
		"an old revision told for a guard":                {begin + op(0, 2, 5, 6, guarded("c", 7), refusedAt(1)) + final, second},
		"a guard that was no guard":                       {begin + final, op(1, 1, 3, 4, guarded("b", 7), ok(2))},
		"a refusal told before the revision that it names": {
			begin + op(0, 2, 4, 5, guarded("c", 1), refusedAt(2)) + op(0, 3, 6, 7, on("read", ""), read(1, "a")) + final,
			op(1, 1, 3, 8, appends("b"), ok(2)),
		},
		"an unguarded change refused": {begin + op(0, 2, 5, 6, appends("c"), refusedAt(2)) + final, second},
		"two creations":               {begin + op(0, 2, 5, 6, create("c"), ok(1)) + final, second},
	} {
		t.Run(name, func(t *testing.T) { says(t, "not linearizable", write(t, clients, feed)) })
	}
}

func TestStepsAreOne(t *testing.T) {
	both := `"function":"step","documents":["together/shared/g.a","together/shared/g.b"],"token":"x"`
	look := `"function":"look","documents":["together/shared/g.a","together/shared/g.b"]`
	feed := "{\"type\":\"event\",\"seq\":1,\"document\":\"together/shared/g.a\",\"revision\":1,\"agent\":\"client-0\"}\n" +
		"{\"type\":\"event\",\"seq\":2,\"document\":\"together/shared/g.b\",\"revision\":1,\"agent\":\"client-0\"}\n"
	half := `"type":"ok","result":{"g.a":[1,"x"]}`
	whole := `"type":"ok","result":{"g.a":[1,"x"],"g.b":[1,"x"]}`
	step := op(0, 1, 1, 4, both, ok(1))
	says(t, "", write(t, []string{step + op(0, 2, 9, 10, look, whole)}, feed))
	says(t, "not linearizable", write(t, []string{step + op(0, 2, 9, 10, look, whole), op(1, 1, 2, 3, look, half)}, feed))
	says(t, "not linearizable", write(t, []string{step + op(0, 2, 9, 10, look, half)}, feed))
}

func TestFeeds(t *testing.T) {
	clients := []string{op(0, 1, 1, 2, create("a"), ok(1)) + op(0, 2, 9, 10, on("read", ""), read(2, "a\nb")),
		op(1, 1, 3, 4, appends("b"), ok(2))}
	right := told(5, 1, 0) + told(7, 2, 1)
	for want, feeds := range map[string][]string{
		"its last event is of revision 1":            {told(5, 1, 0)},
		"of notebooks/shared/r0-0, after revision 2": {right + told(8, 2, 1)},
		"event 5 after 7":                            {told(7, 2, 1) + told(5, 1, 0)},
		"it saw event 7, without":                    {right, told(7, 2, 1)},
		"another reader saw":                         {right, told(5, 1, 0) + told(7, 2, 0)},
		"names client-0":                             {told(5, 1, 0) + told(7, 2, 0)},
		"its last event is of revision 3":            {right + told(8, 3, 1)},
		"which no client has written":                {right + strings.Replace(told(8, 1, 1), doc, "notebooks/shared/x", 1)},
	} {
		t.Run(want, func(t *testing.T) { says(t, want, write(t, clients, feeds...)) })
	}
	t.Run("a reader that did not end", func(t *testing.T) {
		folder := write(t, clients, right)
		put(t, folder, "feed-0.jsonl", right)
		says(t, "did not come to the end", folder)
	})
	t.Run("a document that was not read at the end", func(t *testing.T) {
		says(t, "no read comes after", write(t, []string{op(0, 1, 1, 2, create("a"), ok(1))}, told(5, 1, 0)))
	})
}

func logs(token string) string {
	return fmt.Sprintf(`"function":"memory","documents":["agent_memory/shared/client-0"],"token":%q`, token)
}

func kept(tokens ...string) string {
	text := ""
	for _, token := range tokens {
		text += fmt.Sprintf("{\"type\":\"memory\",\"day\":\"2026-11-23\",\"agent\":\"client-0\",\"token\":%q}\n", token)
	}
	return text + ending
}

func toldMemories(count int) string {
	text := ""
	for i := 1; i <= count; i++ {
		text += strings.ReplaceAll(told(i, i, 0), doc, "agent_memory/shared/client-0")
	}
	return text
}

func TestJournals(t *testing.T) {
	both := op(0, 1, 1, 2, logs("a"), ok(1)) + op(0, 2, 3, 4, logs("b"), ok(2))
	lost := op(0, 1, 1, 2, logs("a"), unknown) + op(0, 2, 3, 4, logs("b"), ok(1))
	happened := op(0, 1, 1, 2, logs("a"), unknown) + op(0, 2, 3, 4, logs("b"), ok(2))
	late := op(0, 1, 1, 2, logs("a"), unknown) + op(0, 2, 3, 4, logs("b"), ok(1))
	refused := op(0, 1, 1, 2, logs("a"), refusedAt(0)) + op(0, 2, 3, 4, logs("b"), ok(1))
	for name, each := range map[string]struct {
		client, journal string
		events          int
		want            string
	}{
		"both":                               {both, kept("a", "b"), 2, ""},
		"an unknown one that did not happen": {lost, kept("b"), 1, ""},
		"an unknown one that happened":       {happened, kept("a", "b"), 2, ""},
		"an unknown one that happened late":  {late, kept("b", "a"), 2, ""},
		"lost":                               {both, kept("a"), 2, "the journal has the memory 0 times: client 0 #2"},
		"double":                             {both, kept("a", "b", "a"), 2, "the journal has the memory 2 times: client 0 #1"},
		"an unknown one that is double":      {happened, kept("a", "a", "b"), 2, "2 times: client 0 #1"},
		"out of order":                       {both, kept("b", "a"), 2, "client 0 #1 memory a [0.000000 to 0.000000 s]: ok revision 1 behind"},
		"refused and there":                  {refused, kept("a", "b"), 1, "the journal has the memory 1 times"},
		"of nobody":                          {both, kept("a", "b", "c"), 2, `has a memory "c" of client-0, which that client has not logged`},
		"an event that is no entry":          {lost, kept("b"), 2, "has 2 events, the journal has 1 memories"},
		"no end":                             {both, strings.TrimSuffix(kept("a", "b"), ending), 2, "was not read to its end"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, []string{each.client}, toldMemories(each.events))
			put(t, folder, "journal.jsonl", each.journal)
			says(t, each.want, folder)
		})
	}
}
