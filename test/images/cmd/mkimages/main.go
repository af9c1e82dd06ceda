// Command mkimages builds images into docker archives, one file per image, from this repository alone: those of tests
// and samples or, with --daemons, those of the daemons that the Helm chart runs, or, with --program, that of a program.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"keelson.dev/test/images/applet"
	"keelson.dev/test/images/imagefile"
)

func main() {
	out := flag.String("out", "bin/images", "folder of the archives")
	daemons := flag.String("daemons", "", "folder of the daemons' programs; with it, only their images are made")
	program := flag.String("program", "", "a program; with it, only its image is made, by its name")
	version := flag.String("version", "unknown", "a label of all programs' images, the tag of --program's")
	flag.Parse()
	if err := run(*out, *daemons, *program, *version); err != nil {
		fmt.Fprintln(os.Stderr, "mkimages:", err)
		os.Exit(1)
	}
}

func run(out, daemons, program, version string) error {
	images := map[string]imagefile.Spec{}
	switch {
	case daemons != "":
		for _, daemon := range []string{"scheduler", "workload-controllers", "podgc"} {
			// Their tag is always dev, the chart's default.
			if err := addProgram(images, daemons, "keelson-"+daemon, "keelson.dev/"+daemon+":dev",
				version); err != nil {
				return err
			}
		}
		return write(images, out)
	case program != "":
		folder, name := filepath.Split(program)
		if err := addProgram(images, folder, name, "keelson.dev/"+name+":"+version, version); err != nil {
			return err
		}
		return write(images, out)
	}
	programs, err := os.MkdirTemp("", "mkimages-")
	if err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(programs) }()
	for _, program := range []string{"pause", "testserver"} {
		if err := compile(program, programs); err != nil {
			return err
		}
	}
	return write(specs(programs), out)
}

// write stores each image in its file.
func write(images map[string]imagefile.Spec, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("making the folder of the archives: %w", err)
	}
	for _, file := range slices.Sorted(maps.Keys(images)) {
		if err := imagefile.Write(images[file], filepath.Join(out, file)); err != nil {
			return err
		}
		fmt.Println("   ", images[file].Name)
	}
	return nil
}

// compile builds a program without C, so that it runs in an image that holds nothing else.
func compile(program, folder string) error {
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", folder, "./cmd/"+program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("compiling %s: %w", program, err)
	}
	return nil
}

// specs maps the archives' file names to what they hold.
func specs(programs string) map[string]imagefile.Spec {
	hello := func(version string) imagefile.Spec {
		return testserver(programs, "keelson.dev/hello:"+version, version)
	}
	interrupted := testserver(programs, "keelson.dev/interrupted:1", "1")
	interrupted.StopSignal = "SIGINT"
	return map[string]imagefile.Spec{
		"pause.tar": {
			Name:       "keelson.dev/pause:1",
			Entries:    []imagefile.Entry{{Path: "/pause", Source: filepath.Join(programs, "pause"), Mode: 0o755}},
			Entrypoint: []string{"/pause"},
		},
		"hello-1.tar":     hello("1"),
		"hello-2.tar":     hello("2"),
		"testserver.tar":  testserver(programs, "keelson.dev/testserver:1", "1"),
		"interrupted.tar": interrupted,
	}
}

// addProgram adds the image of one program of this machine, with what it is linked with.
func addProgram(images map[string]imagefile.Spec, folder, program, image, version string) error {
	entries, err := imagefile.Program("/"+program, filepath.Join(folder, program))
	if err != nil {
		return err
	}
	images[program+".tar"] = imagefile.Spec{
		Name: image, Entries: entries, Entrypoint: []string{"/" + program},
		Labels: map[string]string{"org.opencontainers.image.version": version},
	}
	return nil
}

// testserver is one program under many names, as busybox is.
func testserver(programs, name, version string) imagefile.Spec {
	entries := []imagefile.Entry{
		{Path: "/bin", Dir: true, Mode: 0o755},
		{Path: "/etc", Dir: true, Mode: 0o755},
		{Path: "/tmp", Dir: true, Mode: 0o1777},
		{Path: "/etc/passwd",
			Content: "root:x:0:0:root:/:/bin/sh\napp:x:1000:1000:app:/:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/:/bin/sh\n", Mode: 0o644},
		{Path: "/etc/group", Content: "root:x:0:\napp:x:1000:\nnobody:x:65534:\n", Mode: 0o644},
		{Path: "/bin/testserver", Source: filepath.Join(programs, "testserver"), Mode: 0o755},
	}
	for _, command := range applet.Names() {
		entries = append(entries, imagefile.Entry{Path: "/bin/" + command, Link: "testserver", Mode: 0o777})
	}
	return imagefile.Spec{
		Name:       name,
		Entries:    entries,
		Entrypoint: []string{"/bin/testserver", "serve"},
		Env:        []string{"PATH=/bin", "VERSION=" + version},
		WorkingDir: "/",
		Labels:     map[string]string{"org.opencontainers.image.version": version},
	}
}
