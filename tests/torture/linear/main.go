// SPDX-License-Identifier: MIT

// linear checks a history that tests/torture/run --history has written: each document is a register with compare-and-swap and
// append, a change of several documents is one step, the feed has exactly the changes, in one order of which each reader saw a
// prefix, and the journal has exactly the memories.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Longest decision of one partition.
const decideTimeout = 2 * time.Minute

const problemsShown = 10

func checkAll(parts []*partition) {
	work := make(chan *partition)
	var workers sync.WaitGroup
	for i := 0; i < runtime.GOMAXPROCS(0); i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for part := range work {
				part.check()
			}
		}()
	}
	for _, part := range parts {
		work <- part
	}
	close(work)
	workers.Wait()
}

func again(folder string) string {
	var run struct{ Again string }
	text, err := os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil || json.Unmarshal(text, &run) != nil {
		return "run.json is not there"
	}
	return run.Again
}

func run(folder string) ([]string, error) {
	began := time.Now()
	operations, err := readHistory(folder)
	if err != nil {
		return nil, err
	}
	all, seen, err := readFeed(folder)
	if err != nil {
		return nil, err
	}
	kept, err := readJournal(folder)
	if err != nil {
		return nil, err
	}
	parts := partitions(operations)
	checkAll(parts)
	all.unite(seen)
	logged := kept.check(operations)
	all.check(parts, operations, logged)
	var problems []string
	for _, part := range parts {
		problems = append(problems, part.problems...)
	}
	problems = append(append(problems, all.problems...), kept.problems...)
	fmt.Printf("%d operations in %d parts, %d events, %d readers, %d memories: checked in %.1f s\n", len(operations), len(parts),
		len(all.order), all.readers, len(kept.memories), time.Since(began).Seconds())
	return problems, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check DIR")
		os.Exit(2)
	}
	folder := os.Args[1]
	problems, err := run(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if len(problems) == 0 {
		fmt.Println("linearizable")
		return
	}
	for i, each := range problems {
		if i == problemsShown {
			fmt.Printf("  and %d more\n", len(problems)-i)
			break
		}
		fmt.Println("  VIOLATION", each)
	}
	fmt.Printf("  again: %s\n", again(folder))
	os.Exit(1)
}
