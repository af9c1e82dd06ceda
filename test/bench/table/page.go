package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// preface begins the page.
const preface = `# Benchmarks

Every benchmark starts real daemons with an empty store. CPU is in milliseconds of user and system time per unit of
work; compare it rather than seconds. It differs between machines, and on one machine between hours, by up to 1.4:
bytes allocated, writes, store calls and events do not.
`

// section is a part of the page that one command writes; its heading begins with the title.
type section struct{ title, about, content string }

// writeTo puts the section on the page in place of its older self and leaves the other sections as they are. Nothing
// is done if no page is named.
func (s section) writeTo(page string) error {
	if page == "" {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(page, []byte(s.on(string(old))), 0o644)
}

// on returns the page with the section on it.
func (s section) on(page string) string {
	const mark = "\n## "
	mine := s.title + s.about + "\n\n" + s.content
	all := strings.Split(strings.TrimSuffix(page, "\n"), mark)[1:]
	at := slices.IndexFunc(all, func(old string) bool { return strings.HasPrefix(old, s.title) })
	if at < 0 {
		at, all = len(all), append(all, "")
	}
	all[at] = strings.TrimSuffix(mine, "\n")
	for i := range all {
		all[i] = mark + strings.TrimSuffix(all[i], "\n") + "\n"
	}
	return preface + strings.Join(all, "")
}
