package applet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func cat(args []string, s Streams) error {
	if len(args) == 0 {
		args = []string{"-"}
	}
	return eachInput(args, s, func(_ string, in io.Reader) error {
		_, err := io.Copy(s.Out, in)
		return err
	})
}

// eachInput opens files one after the other; "-" is the standard input. It goes on after one that fails.
func eachInput(names []string, s Streams, read func(name string, in io.Reader) error) error {
	var failed error
	for _, name := range names {
		if name == "-" {
			failed = errors.Join(failed, read(name, s.In))
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		failed = errors.Join(failed, read(name, file))
		file.Close()
	}
	return failed
}

func chmod(args []string, _ Streams) error {
	if len(args) < 2 {
		return errors.New("usage: chmod OCTAL-MODE FILE")
	}
	mode, err := strconv.ParseUint(args[0], 8, 12)
	if err != nil {
		return fmt.Errorf("mode %q is not octal", args[0])
	}
	var failed error
	for _, name := range args[1:] {
		failed = errors.Join(failed, syscall.Chmod(name, uint32(mode)))
	}
	return failed
}

func cp(args []string, _ Streams) error {
	set, args, err := options(args, "afrR", "")
	if err != nil {
		return err
	}
	if len(args) != 2 {
		return errors.New("usage: cp [-r] SOURCE TARGET")
	}
	source, target := args[0], into(args[1], args[0])
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if len(set) == 0 {
			return fmt.Errorf("%s is a directory (not copied without -r)", source)
		}
		return os.CopyFS(target, os.DirFS(source))
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, info.Mode().Perm())
}

// into appends the source's name where the target is a directory.
func into(target, source string) string {
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		return filepath.Join(target, filepath.Base(source))
	}
	return target
}

func mv(args []string, _ Streams) error {
	if len(args) != 2 {
		return errors.New("usage: mv SOURCE TARGET")
	}
	return os.Rename(args[0], into(args[1], args[0]))
}

func ln(args []string, _ Streams) error {
	set, args, err := options(args, "sf", "")
	if err != nil {
		return err
	}
	if len(args) != 2 {
		return errors.New("usage: ln [-sf] TARGET LINK")
	}
	if set['f'] != "" {
		if err := os.Remove(args[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if set['s'] != "" {
		return os.Symlink(args[0], args[1])
	}
	return os.Link(args[0], args[1])
}

func readlink(args []string, s Streams) error {
	set, args, err := options(args, "f", "")
	if err != nil {
		return err
	}
	for _, name := range args {
		target, err := os.Readlink(name)
		if set['f'] != "" {
			target, err = filepath.EvalSymlinks(name)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(s.Out, target)
	}
	return nil
}

func mkdir(args []string, _ Streams) error {
	set, args, err := options(args, "p", "")
	if err != nil {
		return err
	}
	var failed error
	for _, name := range args {
		if set['p'] != "" {
			failed = errors.Join(failed, os.MkdirAll(name, 0o755))
		} else {
			failed = errors.Join(failed, os.Mkdir(name, 0o755))
		}
	}
	return failed
}

func rm(args []string, _ Streams) error {
	set, args, err := options(args, "rRf", "")
	if err != nil {
		return err
	}
	remove := os.Remove
	if set['r'] != "" || set['R'] != "" {
		remove = os.RemoveAll
	}
	var failed error
	for _, name := range args {
		if err := remove(name); err != nil && (set['f'] == "" || !errors.Is(err, fs.ErrNotExist)) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func touch(args []string, _ Streams) error {
	var failed error
	for _, name := range args {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		file.Close()
		now := time.Now()
		failed = errors.Join(failed, os.Chtimes(name, now, now))
	}
	return failed
}

func ls(args []string, s Streams) error {
	set, args, err := options(args, "1ald", "")
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	var failed error
	for _, name := range args {
		failed = errors.Join(failed, list(name, set, s))
	}
	return failed
}

func list(name string, set map[rune]string, s Streams) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if target, err := os.Stat(name); err == nil && set['l'] == "" {
		info = target
	}
	if !info.IsDir() || set['d'] != "" {
		describe(name, info, set, s)
		return nil
	}
	entries, err := os.ReadDir(name)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") && set['a'] == "" {
			continue
		}
		if info, err := entry.Info(); err == nil {
			describe(entry.Name(), info, set, s)
		}
	}
	return err
}

func describe(name string, info fs.FileInfo, set map[rune]string, s Streams) {
	if set['l'] == "" {
		fmt.Fprintln(s.Out, name)
		return
	}
	uid, gid := owner(info)
	fmt.Fprintf(s.Out, "%s %d %d %d %s %s\n", info.Mode(), uid, gid, info.Size(),
		info.ModTime().UTC().Format(time.DateTime), name)
}

func owner(info fs.FileInfo) (uid, gid uint32) {
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		return status.Uid, status.Gid
	}
	return 0, 0
}

// stat prints what -c asks for: %a mode, %u user, %g group, %s size, %n name.
func stat(args []string, s Streams) error {
	set, args, err := options(args, "L", "c")
	if err != nil {
		return err
	}
	format := set['c']
	if format == "" {
		format = "%n %a %u %g %s"
	}
	look := os.Lstat
	if set['L'] != "" {
		look = os.Stat
	}
	for _, name := range args {
		info, err := look(name)
		if err != nil {
			return err
		}
		uid, gid := owner(info)
		mode := uint32(info.Mode().Perm())
		if status, ok := info.Sys().(*syscall.Stat_t); ok {
			mode = status.Mode & 0o7777
		}
		fmt.Fprintln(s.Out, strings.NewReplacer("%n", name, "%a", strconv.FormatUint(uint64(mode), 8),
			"%u", fmt.Sprint(uid), "%g", fmt.Sprint(gid), "%s", fmt.Sprint(info.Size())).Replace(format))
	}
	return nil
}
