package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/gatewayapi"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/wasm"
)

// judge holds the world that is translated.
type judge struct {
	objects    []object
	settings   settings
	controller string
}

// settings are those of Envoy Gateway's own configuration.
type settings struct {
	luaDisabled, sds, noBackends, noPatches, onHost, namespaceMode, secretPerResource bool
}

func (j *judge) serve(asked *request) (any, error) {
	switch asked.Op {
	case "controller":
		return map[string]string{"name": "Envoy Gateway", "version": version}, nil
	case "golden":
		names, err := goldenNames()
		return map[string]any{"names": names}, err
	case "world":
		return j.world(asked)
	case "translate":
		return j.translate(asked)
	case "xds":
		return j.xds()
	case "proxy":
		return j.proxy(asked)
	}
	return nil, fmt.Errorf("unknown op %q", asked.Op)
}

// refusal is an object that is not part of the world, with the reason.
type refusal struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

type worldReply struct {
	Objects []any     `json:"objects"`
	Refused []refusal `json:"refused"`
}

// world replaces the world and returns its objects, with the defaults of their CRDs.
func (j *judge) world(asked *request) (any, error) {
	documents, set := asked.Objects, settings{}
	if asked.Golden != "" {
		var err error
		if documents, set, err = goldenObjects(asked.Golden); err != nil {
			return nil, err
		}
	}
	reply := worldReply{Objects: []any{}, Refused: []refusal{}}
	*j = judge{settings: set, controller: asked.Controller}
	if j.controller == "" {
		j.controller = egv1a1.GatewayControllerName
	}
	for _, document := range documents {
		document = bytes.ReplaceAll(document, []byte("@CERTIFICATE@"), certificate())
		// The test inputs are given to the translator as they are, without defaults.
		read, err := readObject(document, asked.Golden == "", asked.Validate)
		if err != nil {
			reply.Refused = append(reply.Refused, refusal{Object: title(document), Reason: err.Error()})
			continue
		}
		j.objects = append(j.objects, read)
		reply.Objects = append(reply.Objects, read.content)
	}
	return reply, nil
}

// translate runs the translator once for each GatewayClass of the controller.
func (j *judge) translate(asked *request) (any, error) {
	objects := make([]object, 0, len(j.objects))
	for _, one := range j.objects {
		if asked.Policies == nil || !isPolicy(one) {
			objects = append(objects, one)
		}
	}
	reply := newReply()
	var added []json.RawMessage
	if asked.Policies != nil {
		added = append(added, *asked.Policies...)
	}
	for _, document := range append(added, asked.Extra...) {
		read, err := readObject(document, false, asked.Validate)
		if err != nil {
			reply.Refused = append(reply.Refused, refusal{Object: title(document), Reason: err.Error()})
			continue
		}
		objects = append(objects, read)
	}
	reply.names = namesOf(objects)
	for _, class := range classes(objects, j.controller) {
		resources, err := resourcesOf(objects, class, asked.Policies != nil)
		if err != nil {
			return nil, err
		}
		// Errors of single objects are part of their statuses.
		result, _ := j.translator(class, resources).Translate(context.Background(), resources)
		if result == nil {
			return nil, fmt.Errorf("no result for GatewayClass %s", class.Name)
		}
		reply.add(result)
	}
	return reply, nil
}

// translator returns Envoy Gateway's translator for the Gateways of a class.
func (j *judge) translator(class *gwapiv1.GatewayClass, resources *resource.Resources) *gatewayapi.Translator {
	return &gatewayapi.Translator{
		GatewayControllerName:           j.controller,
		GatewayClassName:                gwapiv1.ObjectName(class.Name),
		GlobalRateLimitEnabled:          true,
		EnvoyPatchPolicyEnabled:         !j.settings.noPatches,
		BackendEnabled:                  !j.settings.noBackends,
		SDSSecretRefEnabled:             j.settings.sds,
		PerResourceSystemCASecret:       j.settings.secretPerResource,
		ControllerNamespace:             "envoy-gateway-system",
		MergeGateways:                   gatewayapi.IsMergeGatewaysEnabled(resources),
		MergeBackends:                   gatewayapi.ResolveMergeBackendsConfig(resources),
		GatewayNamespaceMode:            j.settings.namespaceMode,
		WasmCache:                       modules{},
		RunningOnHost:                   j.settings.onHost,
		LuaEnvoyExtensionPolicyDisabled: j.settings.luaDisabled,
		Logger:                          logging.DefaultLogger(nothing{}, egv1a1.LogLevelError),
	}
}

// classes returns the GatewayClasses of this controller.
func classes(objects []object, controller string) []*gwapiv1.GatewayClass {
	var found []*gwapiv1.GatewayClass
	for _, one := range objects {
		if class, ok := one.typed.(*gwapiv1.GatewayClass); ok && string(class.Spec.ControllerName) == controller {
			found = append(found, class)
		}
	}
	return found
}

// nothing discards the translator's log.
type nothing struct{}

func (nothing) Write(text []byte) (int, error) { return len(text), nil }

// modules stands for the cache of Wasm modules, which would fetch them: every module exists, and its
// checksum is that of its address.
type modules struct{}

func (modules) Start(context.Context) {}
func (modules) Cleanup()              {}
func (modules) Get(address string, options *wasm.GetOptions) (string, string, error) {
	sum := sha256.Sum256([]byte(address))
	checksum := hex.EncodeToString(sum[:])
	if options.Checksum != "" && options.Checksum != checksum {
		return "", "", fmt.Errorf("module %s has checksum %s instead of %s", address, checksum, options.Checksum)
	}
	return "https://modules.test/" + checksum + ".wasm", checksum, nil
}

func goldenNames() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(testdata(), "*.in.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no test inputs in %q: set JUDGE_TESTDATA", testdata())
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".in.yaml"))
	}
	return names, err
}

// testdata is the folder of the module's test inputs.
func testdata() string { return os.Getenv("JUDGE_TESTDATA") }

// goldenSettings are the settings that the test of an input has, where they are not the usual ones.
func goldenSettings(name string) settings {
	has := func(part string) bool { return strings.Contains(name, part) }
	return settings{
		luaDisabled:       has("lua-feature-disabled"),
		sds:               name == "sds" || strings.HasPrefix(name, "sds-"),
		noBackends:        name == "backend-invalid-feature-disabled",
		noPatches:         strings.HasSuffix(name, "invalid-feature-disabled"),
		onHost:            strings.HasSuffix(name, "-host-infra"),
		namespaceMode:     has("gateway-namespace-mode"),
		secretPerResource: strings.HasSuffix(name, "per-resource-secret"),
	}
}

var _ wasm.Cache = modules{}

// certificate returns a certificate of an authority as PEM, escaped for a JSON string.
var certificate = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * 365 * time.Hour),
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	return bytes.ReplaceAll(text, []byte("\n"), []byte(`\n`))
})
