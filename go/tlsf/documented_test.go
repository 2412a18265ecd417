package tlsf_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every exported type of the module's packages has an example: of the type, or of one of its methods.
func TestEveryTypeHasAnExample(t *testing.T) {
	for _, folder := range []string{".", "mmap", "typed"} {
		types, examples := declared(t, folder)
		if len(types) == 0 {
			t.Fatalf("%s declares no type", folder)
		}
		for _, name := range types {
			if !hasExample(examples, name) {
				t.Errorf("%s.%s has no example: write Example%s", folder, name, name)
			}
		}
	}
}

func hasExample(examples []string, name string) bool {
	for _, example := range examples {
		if example == name || strings.HasPrefix(example, name+"_") {
			return true
		}
	}
	return false
}

// declared returns the exported types of a package and the names of its examples.
func declared(t *testing.T, folder string) (types, examples []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var tests []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(entry.Name(), "_test.go") {
			tests = append(tests, file)
			continue
		}
		for name, object := range file.Scope.Objects {
			if object.Kind == ast.Typ && ast.IsExported(name) {
				types = append(types, name)
			}
		}
	}
	for _, example := range doc.Examples(tests...) {
		if example.Output != "" || example.EmptyOutput {
			examples = append(examples, example.Name)
		}
	}
	return types, examples
}
