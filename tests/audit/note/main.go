// SPDX-License-Identifier: MIT

// note LOG [CHECKPOINT...]: checks a log in a folder with sumdb/note and sumdb/tlog: the signature of its checkpoint, its
// tiles, each entry, a proof of inclusion for each 97th, and that the tree of each given checkpoint is the beginning of its own.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	height = 8
	width  = 1 << height
	proved = 97
)

type log struct {
	folder   string
	verifier note.Verifier
	tree     tlog.Tree
}

// path is that of C2SP: "tile/8/..." of this package without its height.
func path(tile tlog.Tile) string {
	name := strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/", height))
	return "tile/" + strings.Replace(name, "data/", "entries/", 1)
}

func (l *log) Height() int { return height }

func (l *log) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		data, err := os.ReadFile(filepath.Join(l.folder, path(tile)))
		if err != nil {
			return nil, err
		}
		if len(data) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("%s has %d bytes", path(tile), len(data))
		}
		all = append(all, data)
	}
	return all, nil
}

func (l *log) SaveTiles([]tlog.Tile, [][]byte) {}

// checkpoint reads a signed one of this log.
func (l *log) checkpoint(file string) (tlog.Tree, error) {
	var tree tlog.Tree
	data, err := os.ReadFile(file)
	if err != nil {
		return tree, err
	}
	opened, err := note.Open(data, note.VerifierList(l.verifier))
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != l.verifier.Name() || lines[3] != "" {
		return tree, fmt.Errorf("%s is no checkpoint of %s", file, l.verifier.Name())
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	hash, err := base64.StdEncoding.DecodeString(lines[2])
	if err == nil && len(hash) != tlog.HashSize {
		err = fmt.Errorf("%s has a root of %d bytes", file, len(hash))
	}
	copy(tree.Hash[:], hash)
	return tree, err
}

// bundle reads the entries of one bundle.
func (l *log) bundle(index int64) ([][]byte, error) {
	tile := tlog.Tile{H: height, L: -1, N: index, W: width}
	if left := l.tree.N - index*width; left < width {
		tile.W = int(left)
	}
	data, err := os.ReadFile(filepath.Join(l.folder, path(tile)))
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	for len(data) > 0 {
		if len(data) < 2 || len(data)-2 < int(binary.BigEndian.Uint16(data)) {
			return nil, fmt.Errorf("%s ends amid an entry", path(tile))
		}
		end := 2 + int(binary.BigEndian.Uint16(data))
		entries = append(entries, data[2:end])
		data = data[end:]
	}
	if len(entries) != tile.W {
		return nil, fmt.Errorf("%s has %d entries", path(tile), len(entries))
	}
	return entries, nil
}

func (l *log) checkEntries(reader tlog.HashReader) error {
	for index := int64(0); index*width < l.tree.N; index++ {
		entries, err := l.bundle(index)
		if err != nil {
			return err
		}
		var stored []int64
		for i := range entries {
			stored = append(stored, tlog.StoredHashIndex(0, index*width+int64(i)))
		}
		hashes, err := reader.ReadHashes(stored)
		if err != nil {
			return err
		}
		for i, entry := range entries {
			number := index*width + int64(i)
			hash := tlog.RecordHash(entry)
			if hash != hashes[i] {
				return fmt.Errorf("entry %d is not that of its tile", number)
			}
			if number%proved != 0 {
				continue
			}
			proof, err := tlog.ProveRecord(l.tree.N, number, reader)
			if err == nil {
				err = tlog.CheckRecord(proof, l.tree.N, l.tree.Hash, number, hash)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *log) checkPast(reader tlog.HashReader, file string) error {
	old, err := l.checkpoint(file)
	if err != nil || old.N == 0 {
		return err
	}
	proof, err := tlog.ProveTree(l.tree.N, old.N, reader)
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, l.tree.N, l.tree.Hash, old.N, old.Hash)
}

func check(folder string, past []string) error {
	key, err := os.ReadFile(filepath.Join(folder, "key.pub"))
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(strings.TrimSuffix(string(key), "\n"))
	if err != nil {
		return err
	}
	l := &log{folder: folder, verifier: verifier}
	if l.tree, err = l.checkpoint(filepath.Join(folder, "checkpoint")); err != nil {
		return err
	}
	reader := tlog.TileHashReader(l.tree, l)
	if hash, err := tlog.TreeHash(l.tree.N, reader); err != nil || hash != l.tree.Hash {
		return fmt.Errorf("the root is another one (%v)", err)
	}
	if err := l.checkEntries(reader); err != nil {
		return err
	}
	for _, file := range past {
		if err := l.checkPast(reader, file); err != nil {
			return fmt.Errorf("%s: %v", file, err)
		}
	}
	fmt.Printf("%s: %d entries, %d checkpoints of its past\n", verifier.Name(), l.tree.N, len(past))
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: note LOG [CHECKPOINT...]")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
