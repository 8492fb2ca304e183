// Command tools writes the input of protoc plugins, a CodeGeneratorRequest, to standard output, or unpacks their
// output. It does the part of protoc in Go, so that generated code depends on versions in go.mod alone.
//
//	tools request PROTO_DIR PARAMETER FILE... | protoc-gen-go | tools unpack OUTPUT_DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 4 && args[0] == "request":
		return writeRequest(args[1], args[2], args[3:])
	case len(args) == 2 && args[0] == "unpack":
		return unpack(args[1])
	default:
		return errors.New("usage: tools request PROTO_DIR PARAMETER FILE... | tools unpack OUTPUT_DIR")
	}
}

// writeRequest compiles files and writes the request for a plugin to standard output.
func writeRequest(protos, parameter string, names []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{protos}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: &parameter}
	seen := map[string]bool{}
	for _, file := range files {
		request.ProtoFile = appendFile(request.ProtoFile, file, seen)
	}
	return write(request)
}

// appendFile appends a file after the files that it imports, as plugins expect them.
func appendFile(
	list []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor, seen map[string]bool,
) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return list
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		list = appendFile(list, imports.Get(i).FileDescriptor, seen)
	}
	return append(list, protodesc.ToFileDescriptorProto(file))
}

func write(message proto.Message) error {
	data, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(data)
	return err
}

// unpack writes the files of a plugin's response, which it reads from standard input, to a directory.
func unpack(directory string) error {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(data, response); err != nil {
		return err
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, file := range response.File {
		path := filepath.Join(directory, file.GetName())
		if !strings.HasPrefix(path, filepath.Clean(directory)+string(filepath.Separator)) {
			return fmt.Errorf("%s is outside of %s", file.GetName(), directory)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
