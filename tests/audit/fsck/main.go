// SPDX-License-Identifier: MIT

// fsck LOG: checks a log in a folder with Tessera.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

const workers = 2

func leafHashes(bundle []byte) ([][]byte, error) {
	var entries api.EntryBundle
	if err := entries.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	var hashes [][]byte
	for _, entry := range entries.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}

func check(folder string) error {
	key, err := os.ReadFile(filepath.Join(folder, "key.pub"))
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(strings.TrimSuffix(string(key), "\n"))
	if err != nil {
		return err
	}
	fetcher := client.FileFetcher{Root: folder}
	return fsck.New(verifier.Name(), verifier, fetcher, leafHashes, fsck.Opts{N: workers}).Check(context.Background())
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fsck LOG")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
