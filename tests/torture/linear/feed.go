// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"path/filepath"
	"sort"
)

// event is a change as a reader of the feed saw it.
type event struct {
	seq      uint64
	document string
	revision int
	agent    string
}

// change names what an event tells.
type change struct {
	document string
	revision int
}

type feed struct {
	readers  int
	order    []event // of all readers together
	problems []string
}

func (all *feed) problem(format string, args ...interface{}) {
	all.problems = append(all.problems, fmt.Sprintf(format, args...))
}

func readFeed(folder string) (*feed, map[string][]event, error) {
	all, seen := &feed{}, map[string][]event{}
	paths, err := filepath.Glob(filepath.Join(folder, "feed-*.jsonl"))
	if err != nil || len(paths) == 0 {
		return nil, nil, fmt.Errorf("%s has no feed-*.jsonl", folder)
	}
	for _, path := range paths {
		name, whole := filepath.Base(path), false
		err := eachLine(path, func(one line) error {
			if one.Type == "end" {
				whole = one.Whole
				return nil
			}
			seen[name] = append(seen[name], event{one.Seq, one.Document, one.Revision, one.Agent})
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		if !whole {
			all.problem("%s: it did not come to the end of the feed", name)
		}
		all.readers++
	}
	return all, seen, nil
}

// unite makes one order of what all readers saw, in which each number is one event.
func (all *feed) unite(seen map[string][]event) {
	known := map[uint64]event{}
	for name, events := range seen {
		before := uint64(0)
		for _, each := range events {
			if each.seq <= before {
				all.problem("%s: event %d after %d", name, each.seq, before)
			}
			before = each.seq
			if other, ok := known[each.seq]; ok && other != each {
				all.problem("%s: event %d is %v, another reader saw %v", name, each.seq, each, other)
			}
			known[each.seq] = each
		}
	}
	for _, each := range known {
		all.order = append(all.order, each)
	}
	sort.Slice(all.order, func(a, b int) bool { return all.order[a].seq < all.order[b].seq })
	for name, events := range seen {
		for i, each := range events {
			if each != all.order[i] {
				all.problem("%s: it saw event %d, without %v before it", name, each.seq, all.order[i])
				break
			}
		}
	}
}

// check compares the feed with the changes: it has each revision of each document, in order, once. `logged` are the memories that
// the journal has of each document of memories.
func (all *feed) check(parts []*partition, operations []*operation, logged map[string]int) {
	next, by := map[string]int{}, map[change]event{}
	for _, each := range all.order {
		if each.revision != next[each.document]+1 {
			all.problem("event %d is revision %d of %s, after revision %d", each.seq, each.revision, each.document, next[each.document])
		}
		next[each.document] = each.revision
		by[change{each.document, each.revision}] = each
	}
	for _, part := range parts {
		for i, document := range part.documents {
			if part.last == nil {
				continue
			}
			for j, at := range part.last.at {
				if at == i && part.last.read[j].revision != next[document] {
					all.problem("%s is at revision %d, its last event is of revision %d", document, part.last.read[j].revision, next[document])
				}
			}
			delete(next, document)
		}
	}
	for document, count := range logged {
		if next[document] != count {
			all.problem("%s has %d events, the journal has %d memories of them", document, next[document], count)
		}
		delete(next, document)
	}
	for document, revision := range next {
		all.problem("%d events of %s, which no client has written", revision, document)
	}
	for _, op := range operations {
		if op.outcome != "ok" || op.reads() {
			continue
		}
		found, ok := by[change{op.Documents[0], op.Revision}]
		if !ok {
			all.problem("no event for %s of %s", op.describe(), op.Documents[0])
		} else if found.agent != op.agent() {
			all.problem("event %d of %s names %s, for %s", found.seq, op.Documents[0], found.agent, op.describe())
		}
	}
}
