package applet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func echo(args []string, s Streams) error {
	ending := "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, ending = args[1:], ""
	}
	_, err := fmt.Fprint(s.Out, strings.Join(args, " ")+ending)
	return err
}

func seq(args []string, s Streams) error {
	bounds := []int{1, 0}
	if len(args) == 0 || len(args) > 2 {
		return errors.New("usage: seq [FIRST] LAST")
	}
	for i, arg := range args {
		number, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("%q is not a number", arg)
		}
		bounds[2-len(args)+i] = number
	}
	for i := bounds[0]; i <= bounds[1]; i++ {
		if _, err := fmt.Fprintln(s.Out, i); err != nil {
			return err
		}
	}
	return nil
}

func grep(args []string, s Streams) error {
	set, args, err := options(args, "qvicF", "e")
	if err != nil {
		return err
	}
	pattern, ok := set['e']
	if !ok {
		if len(args) == 0 {
			return errors.New("usage: grep [-qvicF] PATTERN [FILE...]")
		}
		pattern, args = args[0], args[1:]
	}
	if set['F'] != "" {
		pattern = regexp.QuoteMeta(pattern)
	}
	if set['i'] != "" {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	matches := 0
	err = eachInput(args, s, func(_ string, in io.Reader) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if expression.Match(lines.Bytes()) == (set['v'] != "") {
				continue
			}
			matches++
			if set['q'] == "" && set['c'] == "" {
				fmt.Fprintln(s.Out, lines.Text())
			}
		}
		return lines.Err()
	})
	if set['c'] != "" {
		fmt.Fprintln(s.Out, matches)
	}
	if err == nil && matches == 0 {
		return status(1)
	}
	return err
}

func head(args []string, s Streams) error {
	set, args, err := options(args, "", "nc")
	if err != nil {
		return err
	}
	lines, err := count(set, 10)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	return eachInput(args, s, func(_ string, in io.Reader) error {
		if set['c'] != "" {
			_, err := io.CopyN(s.Out, in, int64(lines))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		scanner := bufio.NewScanner(in)
		for i := 0; i < lines && scanner.Scan(); i++ {
			fmt.Fprintln(s.Out, scanner.Text())
		}
		return scanner.Err()
	})
}

// count is the value of -n or -c.
func count(set map[rune]string, otherwise int) (int, error) {
	value := set['n'] + set['c']
	if value == "" {
		return otherwise, nil
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%q is not a count", value)
	}
	return number, nil
}

// tail prints the last lines of one file and, with -f, what is appended to it until it is killed.
func tail(args []string, s Streams) error {
	set, args, err := options(args, "f", "n")
	if err != nil {
		return err
	}
	lines, err := count(set, 10)
	if err != nil {
		return err
	}
	in := s.In
	if len(args) > 0 {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if _, err := s.Out.Write(lastLines(content, lines)); err != nil {
		return err
	}
	for set['f'] != "" {
		if _, err := io.Copy(s.Out, in); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

func lastLines(content []byte, lines int) []byte {
	all := bytes.SplitAfter(content, []byte("\n"))
	if len(all) > 0 && len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	return bytes.Join(all[max(0, len(all)-lines):], nil)
}

func wc(args []string, s Streams) error {
	set, args, err := options(args, "lwc", "")
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	return eachInput(args, s, func(_ string, in io.Reader) error {
		content, err := io.ReadAll(in)
		counts := []struct {
			letter rune
			value  int
		}{{'l', bytes.Count(content, []byte("\n"))}, {'w', len(bytes.Fields(content))}, {'c', len(content)}}
		var words []string
		for _, count := range counts {
			if set[count.letter] != "" || len(set) == 0 {
				words = append(words, strconv.Itoa(count.value))
			}
		}
		fmt.Fprintln(s.Out, strings.Join(words, " "))
		return err
	})
}
