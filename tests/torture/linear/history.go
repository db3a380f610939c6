// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

const lineMax = 64 << 20

// line is one line of a history; history_clients.py says which members each type has.
type line struct {
	Type      string          `json:"type"`
	Process   int             `json:"process"`
	Number    int             `json:"number"`
	Time      int64           `json:"time"`
	Function  string          `json:"function"`
	Documents []string        `json:"documents"`
	Token     string          `json:"token"`
	Old       string          `json:"old"`
	Expected  *int            `json:"expected"`
	Revision  int             `json:"revision"`
	Result    json.RawMessage `json:"result"`
	Error     string          `json:"error"`
	Current   *int            `json:"current"`
	Reader    string          `json:"reader"`
	Seq       uint64          `json:"seq"`
	Document  string          `json:"document"`
	Agent     string          `json:"agent"`
	Day       string          `json:"day"`
	Whole     bool            `json:"whole"`
}

// cell is a document: revision 0 does not exist.
type cell struct {
	revision int
	text     string
}

// operation is one operation with its outcome. `at` are the places of its documents in their partition.
type operation struct {
	line
	call, back int64
	outcome    string
	at         []int
	read       []cell
}

func (op *operation) reads() bool {
	return op.Function == "read" || op.Function == "look"
}

// logs: a memory is in the feed and in the journal, and in no document that is read.
func (op *operation) logs() bool {
	return op.Function == "memory"
}

// agent is the name by which the feed and the journal know its client.
func (op *operation) agent() string {
	return fmt.Sprintf("client-%d", op.Process)
}

func (op *operation) describe() string {
	text := fmt.Sprintf("client %d #%d %s", op.Process, op.Number, op.Function)
	if op.Token != "" {
		text += " " + op.Token
	}
	if op.Old != "" {
		text += " for " + op.Old
	}
	if op.line.Expected != nil {
		text += fmt.Sprintf(" on revision %d", *op.line.Expected)
	}
	if len(op.Documents) > 1 && !op.reads() {
		text += " of " + strings.Join(op.Documents, ", ")
	}
	text += fmt.Sprintf(" [%.6f to %.6f s]: %s", float64(op.call)/1e9, float64(op.back)/1e9, op.outcome)
	if op.reads() {
		for i, each := range op.read {
			text += fmt.Sprintf(" %s@%d(%s)", filepath.Base(op.Documents[i]), each.revision, lastTokens(each.text))
		}
	} else if op.outcome == "ok" {
		text += fmt.Sprintf(" revision %d", op.Revision)
	}
	if op.Error != "" {
		text += " " + op.Error
	}
	if op.Current != nil {
		text += fmt.Sprintf(", it is at %d", *op.Current)
	}
	return text
}

func lastTokens(text string) string {
	tokens := strings.Split(text, "\n")
	if len(tokens) > 3 {
		return "... " + strings.Join(tokens[len(tokens)-3:], " ")
	}
	return strings.Join(tokens, " ")
}

func eachLine(path string, take func(line) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), lineMax)
	for number := 1; scanner.Scan(); number++ {
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return fmt.Errorf("%s:%d: %v", path, number, err)
		}
		if err := take(one); err != nil {
			return fmt.Errorf("%s:%d: %v", path, number, err)
		}
	}
	return scanner.Err()
}

// texts keeps each text once: most reads of a document see the same ones.
type texts map[string]string

func (known texts) one(text string) string {
	if found, ok := known[text]; ok {
		return found
	}
	known[text] = text
	return text
}

func (op *operation) takeRead(result json.RawMessage, known texts) error {
	op.read = make([]cell, len(op.Documents))
	if op.Function == "read" {
		var text *string
		if err := json.Unmarshal(result, &text); err != nil {
			return err
		}
		if text != nil {
			op.read[0] = cell{op.Revision, known.one(*text)}
		}
		return nil
	}
	var rows map[string][2]interface{}
	if err := json.Unmarshal(result, &rows); err != nil {
		return err
	}
	for i, document := range op.Documents {
		if row, ok := rows[filepath.Base(document)]; ok {
			op.read[i] = cell{int(row[0].(float64)), known.one(row[1].(string))}
		}
	}
	return nil
}

// readHistory gives the operations of a folder.
func readHistory(folder string) ([]*operation, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "history-*.jsonl"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s has no history-*.jsonl", folder)
	}
	sort.Strings(paths)
	var all []*operation
	known := texts{}
	for _, path := range paths {
		var open *operation // a client does one thing at a time
		err := eachLine(path, func(one line) error {
			if one.Type == "invoke" {
				open = &operation{line: one, call: one.Time, outcome: "unknown"}
				all = append(all, open)
				return nil
			}
			if open == nil || open.Number != one.Number {
				return fmt.Errorf("the outcome of operation %d without its invocation", one.Number)
			}
			open.back, open.outcome, open.Revision, open.Error, open.Current = one.Time, one.Type, one.Revision, one.Error, one.Current
			if one.Type == "ok" && open.reads() {
				return open.takeRead(one.Result, known)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
