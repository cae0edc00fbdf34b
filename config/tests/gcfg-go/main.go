// Reads gcfg files with the library that defines the dialect. Paths come on standard input, one a
// line; for each it prints one line of JSON: what was read, or that it is an error.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"gopkg.in/gcfg.v1"
)

type section struct {
	Text   []string
	Last   string
	Number int64
	Flag   bool
}

type file struct {
	Alpha section
	Beta  section
	Gamma map[string]*section
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for paths := bufio.NewScanner(os.Stdin); paths.Scan(); {
		var read file
		if err := gcfg.FatalOnly(gcfg.ReadFileInto(&read, paths.Text())); err != nil {
			out.Encode(map[string]string{"error": err.Error()})
			continue
		}
		out.Encode(read)
	}
}
