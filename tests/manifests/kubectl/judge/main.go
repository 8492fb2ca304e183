// Prints what kubectl reads of manifests. Takes paths on standard input; prints for each document one
// line: the path, the line on which its text begins, and JSON or `error: ` and why.
//
// kubectl reads a stream with YAMLOrJSONDecoder, which stops at the first document that it cannot
// read. The same functions are called here for one document at a time, so that the others are
// compared, too.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		path := paths.Text()
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		documents(text, func(line int, found string) {
			fmt.Fprintf(out, "%s\t%d\t%s\n", path, line, found)
		})
	}
}

func documents(text []byte, tell func(int, string)) {
	if utilyaml.IsJSONBuffer(text) {
		if all, ok := jsonStream(text); ok {
			for _, one := range all {
				show(one, 1, tell)
			}
			return
		}
	}
	line := 1
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tell(line, oneLine(err))
			continue
		}
		begins := line
		line += bytes.Count(document, []byte("\n"))
		found, err := yaml.YAMLToJSON(document)
		if err != nil {
			tell(begins, oneLine(err))
			continue
		}
		show(found, begins, tell)
	}
}

// jsonStream reads JSON values that stand one after another; false if something else does.
func jsonStream(text []byte) ([]json.RawMessage, bool) {
	var all []json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var one json.RawMessage
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, true
		}
		if err != nil {
			return nil, false
		}
		all = append(all, one)
	}
}

// show prints a document as the API server gets it: numbers are int64 or float64.
func show(document []byte, line int, tell func(int, string)) {
	var value any
	if err := utiljson.Unmarshal(document, &value); err != nil {
		tell(line, oneLine(err))
		return
	}
	if value == nil {
		return
	}
	printed, err := json.Marshal(value)
	if err != nil {
		tell(line, oneLine(err))
		return
	}
	tell(line, string(printed))
}

func oneLine(err error) string {
	return "error: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), "\n", " "), "\t", " ")
}
