// Package simulate answers what the scheduler would do, from a picture of a mesh: which Pods of which manifests would
// get a node, and what a node more or less would change.
//
//	lists from the API, or a snapshot of them + manifests + nodes more or less -> package cycle -> report
//
// keel runs it as a subcommand of the scheduler's program, as keel imports no service: what answers is the program that
// decides. Nothing is written to the mesh.
package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/config"
)

// Name is the subcommand.
const Name = "simulate"

// Exit statuses of Main.
const (
	exitFailure = 1
	exitUsage   = 2
)

// options are the flags.
type options struct {
	client                    client.Options
	files                     []string
	namespace                 string
	snapshot, save            string
	withoutNodes, withoutZone []string
	addNodes                  []string
	configFile, output        string
}

// usageError marks an error as the user's.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main simulates as the arguments say, and returns the exit status: 0 where there is an answer, whatever it is, 1 after
// a failure and 2 after wrong usage, each with one line on standard error.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Execute(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// Execute is Main with its surroundings given.
func Execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	err := execute(ctx, args, in, out)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usageError{}):
		fmt.Fprintln(errOut, err)
		return exitUsage
	}
	fmt.Fprintln(errOut, err)
	return exitFailure
}

func (o *options) flags(out io.Writer) *pflag.FlagSet {
	fs := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.StringArrayVarP(&o.files, "filename", "f", nil,
		"manifests whose Pods are to be placed: a `file`, a folder or - "+
			"for standard input; may be given several times")
	fs.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of manifests that name none")
	fs.StringSliceVar(&o.withoutNodes, "without-node", nil, "`names` of nodes that are lost")
	fs.StringSliceVar(&o.withoutZone, "without-zone", nil, "`zones` (topology.kubernetes.io/zone) that are lost")
	fs.StringArrayVar(&o.addNodes, "add-node", nil, "`file[=N]` with a Node of which there are N more")
	fs.StringVar(&o.snapshot, "snapshot", "",
		"`file` that stands for the mesh, as --save or kubectl get -o json writes it")
	fs.StringVar(&o.save, "save", "", "`file` to save a snapshot of the mesh to")
	fs.StringVar(&o.configFile, "scheduler-config", "", "KubeSchedulerConfiguration `file`, the scheduler's own")
	fs.StringVarP(&o.output, "output", "o", "", "json for programs")
	o.client.AddFlags(fs)
	fs.Usage = func() {
		fmt.Fprintf(out, "Tell which Pods would get a node, and what nodes more or less would change. Nothing is "+
			"written to the mesh.\n\nUsage:\n  keel simulate [flags]\n\nFlags:\n%s", fs.FlagUsages())
	}
	return fs
}

func execute(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	o := &options{}
	fs := o.flags(out)
	if err := fs.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return usageError{daemon.FlagError(err)}
	}
	if err := o.validate(fs.Args()); err != nil {
		return usageError{err}
	}
	settings, err := config.Load(o.configFile)
	if err != nil {
		return usageError{fmt.Errorf("--scheduler-config: %w", err)}
	}
	question, err := o.read(in)
	if err != nil {
		return usageError{err}
	}
	objects, err := o.mesh(ctx)
	if err != nil {
		return err
	}
	if o.save != "" {
		if err := write(o.save, objects); err != nil {
			return err
		}
		if !o.asks() {
			fmt.Fprintf(out, "%d objects saved to %s\n", len(objects), o.save)
			return nil
		}
	}
	report, err := answer(objects, question, settings)
	if err != nil {
		return usageError{err}
	}
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	report.WriteTable(out)
	return nil
}

// asks reports whether anything is to be simulated.
func (o *options) asks() bool {
	return len(o.files)+len(o.withoutNodes)+len(o.withoutZone)+len(o.addNodes) > 0
}

func (o *options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.output != "" && o.output != "json":
		return fmt.Errorf("--output: %q must be json, or left out for a table", o.output)
	case o.snapshot != "" && o.save != "":
		return errors.New("--save: a snapshot is saved of a mesh, not of a --snapshot")
	case !o.asks() && o.save == "":
		return errors.New("nothing is asked: at least one of --filename, --without-node, --without-zone, --add-node " +
			"and --save must be given")
	}
	return nil
}

// mesh returns the objects of the snapshot, or of the live mesh.
func (o *options) mesh(ctx context.Context) ([]runtime.Object, error) {
	if o.snapshot != "" {
		objects, err := read(o.snapshot)
		if err != nil {
			return nil, usageError{err}
		}
		return objects, nil
	}
	if err := o.client.Validate(); err != nil {
		return nil, usageError{err}
	}
	rest, err := o.client.Config(Name)
	if err != nil {
		return nil, usageError{err}
	}
	api, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return list(ctx, api)
}

// read reads all files that the flags name but the snapshot.
func (o *options) read(in io.Reader) (question, error) {
	q := question{namespace: o.namespace, withoutNodes: o.withoutNodes, withoutZones: o.withoutZone}
	for _, name := range o.files {
		documents, err := manifests(name, in)
		if err != nil {
			return q, err
		}
		q.documents = append(q.documents, documents...)
	}
	for _, flag := range o.addNodes {
		added, err := readNode(flag)
		if err != nil {
			return q, fmt.Errorf("--add-node: %w", err)
		}
		q.added = append(q.added, added)
	}
	return q, nil
}

// splitCount takes the number from the end of FILE=N.
func splitCount(flag string) (file, count string) {
	if i := strings.LastIndexByte(flag, '='); i >= 0 {
		return flag[:i], flag[i+1:]
	}
	return flag, "1"
}
