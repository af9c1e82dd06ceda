// Package applet is the small Unix commands that tests call inside a container: the image has no shell of its own. Each
// knows the options that tests and kubectl use and refuses others.
package applet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// applet runs a command. A status error sets the exit status, any other error is printed and means 1.
type applet func(args []string, s Streams) error

// status is an exit status without a message.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// applets is filled once, here: a map literal cannot refer to sh, which looks commands up.
var applets map[string]applet

func init() {
	applets = map[string]applet{
		"cat": cat, "chmod": chmod, "cp": cp, "date": date, "echo": echo, "env": env, "exit": exit, "false": fail,
		"grep": grep, "head": head, "hostname": hostname, "id": id, "kill": kill, "ln": ln, "ls": ls, "mkdir": mkdir,
		"mv": mv, "nslookup": nslookup, "ps": ps, "pwd": pwd, "readlink": readlink, "requests": requests, "rm": rm,
		"seq": seq, "sh": sh, "sleep": sleep,
		"stat": stat,
		"tail": tail, "tar": archive, "touch": touch, "true": succeed, "wc": wc, "wget": wget,
	}
}

// Names lists the commands in order.
func Names() []string {
	names := make([]string, 0, len(applets))
	for name := range applets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Run runs a command and returns its exit status.
func Run(name string, args []string, s Streams) int {
	command, ok := applets[name]
	if !ok {
		fmt.Fprintf(s.Err, "testserver: no command %q: serve or one of %s\n", name, strings.Join(Names(), " "))
		return 127
	}
	err := command(args, s)
	if err == nil {
		return 0
	}
	var code status
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintf(s.Err, "%s: %v\n", name, err)
	return 1
}

// options takes the leading one-letter options off the arguments: those in flags stand alone, those in valued take the
// rest of the word or the next argument.
func options(args []string, flags, valued string) (set map[rune]string, rest []string, err error) {
	set = map[rune]string{}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0][1:]
		args = args[1:]
		if word == "-" {
			break
		}
		for i, letter := range word {
			if strings.ContainsRune(flags, letter) {
				set[letter] = "true"
				continue
			}
			if !strings.ContainsRune(valued, letter) {
				return nil, nil, fmt.Errorf("unknown option -%c", letter)
			}
			value := word[i+1:]
			if value == "" {
				if len(args) == 0 {
					return nil, nil, fmt.Errorf("option -%c needs a value", letter)
				}
				value, args = args[0], args[1:]
			}
			set[letter] = value
			break
		}
	}
	return set, args, nil
}
