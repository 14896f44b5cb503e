package main

import (
	"fmt"
	"go/types"
	"io"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// writeAPI writes a line for each exported name of each package that users can import, sorted by package and name.
func writeAPI(out io.Writer, list []*released) error {
	for _, m := range list {
		config := packages.Config{Dir: m.dir(), Mode: packages.NeedName | packages.NeedTypes | packages.NeedSyntax}
		found, err := packages.Load(&config, "./...")
		if err != nil {
			return err
		}
		for _, p := range found {
			if len(p.Errors) > 0 {
				return fmt.Errorf("%s: %v", p.PkgPath, p.Errors[0])
			}
			if !public(p) {
				continue
			}
			lines := exported(p.Types, within(p.Types))
			slices.Sort(lines)
			for _, line := range lines {
				fmt.Fprintf(out, "%s: %s\n", p.PkgPath, line)
			}
		}
	}
	return nil
}

// public reports whether users can import p.
func public(p *packages.Package) bool {
	return p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/")
}

// exported returns the exported names of p with their types, and of its types the exported fields and methods.
func exported(p *types.Package, qualifier types.Qualifier) (lines []string) {
	add := func(o types.Object) {
		if o.Exported() {
			lines = append(lines, types.ObjectString(o, qualifier))
		}
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		t, ok := o.(*types.TypeName)
		if !ok || !o.Exported() || t.IsAlias() {
			add(o)
			continue
		}
		named := t.Type().(*types.Named)
		switch u := named.Underlying().(type) {
		case *types.Struct:
			lines = append(lines, "type "+name+" struct")
			for f := range u.Fields() {
				if f.Exported() {
					lines = append(lines, "field "+name+"."+f.Name()+" "+types.TypeString(f.Type(), qualifier))
				}
			}
		default:
			add(o)
		}
		for method := range named.Methods() {
			add(method)
		}
	}
	return lines
}

// within returns a qualifier for texts that stand in p.
func within(p *types.Package) types.Qualifier {
	return func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
}
