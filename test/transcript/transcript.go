// Package transcript reads what a page of documentation shows of a terminal, and holds it against what the commands
// say.
//
// A page shows a terminal in blocks fenced by ```console. A line that begins with "$ " is a command, "> " continues it,
// and what follows up to the next command is what it says:
//
//	$ kubectl get deployment hello
//	NAME    READY   UP-TO-DATE   AVAILABLE   AGE
//	hello   3/3     3            3           ...
//
// The three dots stand for any text within a line and, alone on a line, for any number of lines. Blanks count once. A
// command of which the page shows nothing may say anything. Commands succeed, but those that end with the comment
// "# fails".
package transcript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Step is a command and what the page says of it.
type Step struct {
	// Line is the command's line in the page, from 1.
	Line    int
	Command string
	// Says are the lines that the page shows; nil: it shows nothing.
	Says []string
	// Fails is set if the command must end with a status other than 0.
	Fails bool
}

// failing marks a command that is to fail.
const failing = "# fails"

// Read returns the steps of a page. It is an error where a block does not begin with a command, is not closed, or no
// block is there.
func Read(page string) ([]Step, error) {
	var steps []Step
	within, first := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case !within:
			within = line == "```console"
			first = within
			continue
		case line == "```":
			within = false
		case strings.HasPrefix(line, "$ "):
			command := line[2:]
			steps = append(steps, Step{Line: i + 1, Command: command, Fails: strings.HasSuffix(command, failing)})
		case first:
			return nil, fmt.Errorf("line %d: a block begins with a command (\"$ ...\"), not with %q", i+1, line)
		case strings.HasPrefix(line, "> ") && steps[len(steps)-1].Says == nil:
			steps[len(steps)-1].Command += "\n" + line[2:]
		default:
			steps[len(steps)-1].Says = append(steps[len(steps)-1].Says, line)
		}
		first = false
	}
	if within {
		return nil, fmt.Errorf("a block is not closed by ```")
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("no block of ```console is there")
	}
	return steps, nil
}

// mark begins and ends the status of a command in the output of a script.
const mark = "\x1e"

// Script returns a bash script that runs the steps in order in one shell, up to the first with an unexpected
// status. Split reads its output.
func Script(steps []Step) string {
	var b strings.Builder
	b.WriteString("exec 2>&1 </dev/null\n")
	for _, s := range steps {
		is := "-eq"
		if s.Fails {
			is = "-ne"
		}
		fmt.Fprintf(&b, "{ %s\n}\nstatus=$?; ", s.Command)
		fmt.Fprintf(&b, "printf '%[1]s%%d%[1]s' $status; [ $status %[2]s 0 ] || exit 1\n", mark, is)
	}
	return b.String()
}

// Result is what a step did.
type Result struct {
	Said   string
	Status int
}

// Split returns what each step did that has ended, and what came after the last of them.
func Split(output string) (ended []Result, rest string) {
	for {
		said, after, found := strings.Cut(output, mark)
		if !found {
			return ended, output
		}
		status, after, found := strings.Cut(after, mark)
		n, err := strconv.Atoi(status)
		if !found || err != nil {
			return ended, output
		}
		ended, output = append(ended, Result{said, n}), after
	}
}

// Differs says in what a result is not as the page says; empty: in nothing.
func (s Step) Differs(r Result) string {
	if (r.Status != 0) != s.Fails {
		return fmt.Sprintf("status %d", r.Status)
	}
	if s.Says != nil && !pattern(s.Says).MatchString(blanks(r.Said)) {
		return "the page shows\n" + strings.Join(s.Says, "\n")
	}
	return ""
}

// pattern matches the lines that a page shows, each of which ends with a newline.
func pattern(says []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for _, line := range strings.Split(strings.TrimSuffix(blanks(strings.Join(says, "\n")), "\n"), "\n") {
		if line == "..." {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		parts := strings.Split(line, "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		b.WriteString(strings.Join(parts, ".*") + `\n`)
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

// blanks makes one of several blanks and ends the last line. Empty lines at the beginning or the end count as none.
func blanks(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
