// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// partition is what is checked by itself: one notebook, or the documents of a group, which are changed in one step.
type partition struct {
	name       string
	documents  []string
	operations []*operation
	problems   []string
	last       *operation // the read behind all other operations
}

func partitionOf(document string) string {
	if strings.HasPrefix(document, "together/") {
		return document[:strings.LastIndex(document, ".")]
	}
	return document
}

func partitions(all []*operation) []*partition {
	found := map[string]*partition{}
	var order []*partition
	for _, op := range all {
		if op.logs() {
			continue
		}
		name := partitionOf(op.Documents[0])
		part, ok := found[name]
		if !ok {
			part = &partition{name: name}
			found[name] = part
			order = append(order, part)
		}
		part.operations = append(part.operations, op)
	}
	for _, part := range order {
		part.prepare()
	}
	return order
}

func (part *partition) problem(format string, args ...interface{}) {
	part.problems = append(part.problems, part.name+": "+fmt.Sprintf(format, args...))
}

// prepare numbers the documents, drops what has certainly changed and seen nothing, and decides what became of unknown outcomes.
func (part *partition) prepare() {
	place := map[string]int{}
	var kept []*operation
	for _, op := range part.operations {
		for _, document := range op.Documents {
			if _, ok := place[document]; !ok {
				place[document] = len(part.documents)
				part.documents = append(part.documents, document)
			}
			op.at = append(op.at, place[document])
		}
		if (op.reads() && op.outcome != "ok") || (op.outcome == "fail" && !refusal(op.Error)) {
			continue
		}
		kept = append(kept, op)
		if op.reads() && (part.last == nil || op.call > part.last.call) {
			part.last = op
		}
	}
	part.operations = kept
	for _, op := range kept {
		if part.last == nil || (op != part.last && op.call > part.last.call) || (op.outcome == "ok" && op != part.last && op.back > part.last.call) {
			part.problem("no read comes after all other operations")
			return
		}
	}
	part.decide()
}

// refusal says whether this error tells something of the document.
func refusal(code string) bool {
	return code == "CONFLICT" || code == "NOT_FOUND" || code == "TOOL_FAILED"
}

// decide: no operation takes a token of another out of a document without having read it, so a change whose token no read has shown
// has not happened before the last read. One that was shown has happened, before the end of the first read that shows it.
func (part *partition) decide() {
	unknown := map[string]*operation{}
	for _, op := range part.operations {
		if op.outcome == "unknown" {
			unknown[op.Token] = op
			op.back = 0
		}
	}
	if len(unknown) == 0 {
		return
	}
	shown := func(token string, back int64) {
		if op, ok := unknown[token]; ok && (op.back == 0 || back < op.back) {
			op.back = back
		}
	}
	for _, op := range part.operations {
		if op.outcome != "ok" {
			continue
		}
		if op.Old != "" {
			shown(op.Old, op.back)
		}
		for _, each := range op.read {
			for _, token := range strings.Split(each.text, "\n") {
				shown(token, op.back)
			}
		}
	}
	var kept []*operation
	for _, op := range part.operations {
		if op.outcome == "unknown" && op.back == 0 {
			continue
		}
		if op.back < op.call {
			part.problem("seen before it was asked for: %s", op.describe())
		}
		kept = append(kept, op)
	}
	part.operations = kept
}

// state of a partition; never changed once made.
type state []cell

func model(count int) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return make(state, count) },
		Step: func(now, input, _ interface{}) (bool, interface{}) {
			op := input.(*operation)
			if op.outcome == "fail" {
				return refused(now.(state), op), now
			}
			if op.reads() {
				return seen(now.(state), op), now
			}
			return changed(now.(state), op)
		},
		Equal: func(a, b interface{}) bool {
			left, right := a.(state), b.(state)
			for i := range left {
				if left[i] != right[i] {
					return false
				}
			}
			return true
		},
	}
}

func seen(now state, op *operation) bool {
	for i, at := range op.at {
		if now[at] != op.read[i] {
			return false
		}
	}
	return true
}

// refused says whether the state is a reason for this refusal.
func refused(now state, op *operation) bool {
	is := now[op.at[0]]
	guarded := op.line.Expected != nil
	if guarded && op.Error != "CONFLICT" && *op.line.Expected != is.revision {
		return false
	}
	switch op.Error {
	case "CONFLICT":
		return guarded && *op.line.Expected != is.revision && (op.Current == nil || *op.Current == is.revision)
	case "NOT_FOUND":
		return is.revision == 0
	default:
		return op.Function == "replace" && is.revision > 0 && !strings.Contains(is.text, op.Old)
	}
}

func changed(now state, op *operation) (bool, interface{}) {
	next := append(state(nil), now...)
	for i, at := range op.at {
		is := now[at]
		if op.line.Expected != nil && *op.line.Expected != is.revision {
			return false, now
		}
		text := op.Token
		switch op.Function {
		case "append", "replace":
			if is.revision == 0 || !strings.Contains(is.text, op.Old) {
				return false, now
			}
		}
		if op.Function == "replace" {
			text = strings.Replace(is.text, op.Old, op.Token, 1)
		} else if is.text != "" && op.Function != "create" {
			text = is.text + "\n" + op.Token
		}
		next[at] = cell{is.revision + 1, text}
		if i == 0 && op.outcome == "ok" && op.Revision != is.revision+1 {
			return false, now
		}
	}
	return true, next
}

// check adds a problem where the operations have no order in which each is right.
func (part *partition) check() {
	if len(part.problems) > 0 {
		return
	}
	history := make([]porcupine.Operation, len(part.operations))
	for i, op := range part.operations {
		history[i] = porcupine.Operation{ClientId: op.Process, Input: op, Call: op.call, Output: op, Return: op.back}
	}
	switch porcupine.CheckOperationsTimeout(model(len(part.documents)), history, decideTimeout) {
	case porcupine.Unknown:
		part.problem("%d operations were not decided within %v", len(history), decideTimeout)
	case porcupine.Illegal:
		part.explain(history)
	}
}

// explain tells where the longest order of operations ends, and what does not fit there.
func (part *partition) explain(history []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(model(len(part.documents)), history, decideTimeout)
	var longest []porcupine.Operation
	for _, list := range info.PartialLinearizationsOperations() {
		for _, each := range list {
			if len(each) > len(longest) {
				longest = each
			}
		}
	}
	fits := map[*operation]bool{}
	var now interface{} = make(state, len(part.documents))
	for _, each := range longest {
		op := each.Input.(*operation)
		fits[op] = true
		_, now = model(len(part.documents)).Step(now, op, op)
	}
	text := "not linearizable. After"
	for _, each := range longest[max(0, len(longest)-4):] {
		text += "\n        " + each.Input.(*operation).describe()
	}
	for i, each := range now.(state) {
		text += fmt.Sprintf("\n      %s is at revision %d (%s)", part.documents[i], each.revision, lastTokens(each.text))
	}
	var rest []*operation
	for _, op := range part.operations {
		if !fits[op] {
			rest = append(rest, op)
		}
	}
	sort.Slice(rest, func(a, b int) bool { return rest[a].back < rest[b].back })
	text += ", and none of these can be next:"
	for _, op := range rest[:min(len(rest), 6)] {
		text += "\n        " + op.describe()
	}
	part.problem("%s", text)
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func min(a, b int) int {
	return a + b - max(a, b)
}
