// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// memory is an entry of the journal, as it was read at the end.
type memory struct {
	day, agent, token string
}

type journal struct {
	memories []memory // each day's, oldest first
	problems []string
}

func (kept *journal) problem(format string, args ...interface{}) {
	kept.problems = append(kept.problems, fmt.Sprintf(format, args...))
}

// readJournal gives what the folder has; without the end of it, that is a problem.
func readJournal(folder string) (*journal, error) {
	kept, whole := &journal{}, false
	err := eachLine(filepath.Join(folder, "journal.jsonl"), func(one line) error {
		if one.Type == "end" {
			whole = one.Whole
			return nil
		}
		kept.memories = append(kept.memories, memory{one.Day, one.Agent, one.Token})
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if !whole {
		kept.problem("the journal was not read to its end")
	}
	return kept, nil
}

// check compares the journal with the memories of the clients: each acknowledged one is there once, each with an unknown
// outcome at most once, and within a day none is behind one that its agent began after it was acknowledged. Gives the number of
// memories of each document of memories.
func (kept *journal) check(operations []*operation) map[string]int {
	by, count, logged := map[string]*operation{}, map[string]int{}, map[string]int{}
	for _, op := range operations {
		if op.logs() {
			by[op.Token] = op
			logged[op.Documents[0]] += 0
		}
	}
	newest := map[[2]string]int{} // number of an operation, by day and agent
	for _, each := range kept.memories {
		op, ok := by[each.token]
		if !ok || op.agent() != each.agent {
			kept.problem("the journal has a memory %q of %s, which that client has not logged", each.token, each.agent)
			continue
		}
		count[each.token]++
		logged[op.Documents[0]]++
		place := [2]string{each.day, each.agent}
		if op.outcome == "ok" && op.Number < newest[place] {
			kept.problem("the journal has %s behind the memory of #%d", op.describe(), newest[place])
		}
		newest[place] = max(newest[place], op.Number)
	}
	for _, op := range operations {
		if !op.logs() {
			continue
		}
		times := count[op.Token]
		if times > 1 || (op.outcome == "ok" && times == 0) || (op.outcome == "fail" && times > 0) {
			kept.problem("the journal has the memory %d times: %s", times, op.describe())
		}
	}
	return logged
}
