package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	envoygateway "github.com/envoyproxy/gateway"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
)

// crd is what the API server does with the objects of a kind. The module has a validator and a
// defaulter of its own; they read the schema anew for each object.
type crd struct {
	properties *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	ready      sync.Once
}

// crds returns the CRDs of the module: those of the Gateway API, and its own.
var crds = sync.OnceValues(func() (map[schema.GroupVersionKind]*crd, error) {
	found := map[schema.GroupVersionKind]*crd{}
	err := resource.IterYAMLBytes(envoygateway.GatewayCRDs, func(text []byte) error {
		var external apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &external); err != nil || external.Kind != "CustomResourceDefinition" {
			return err
		}
		for index := range external.Spec.Versions {
			version := &external.Spec.Versions[index]
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				continue
			}
			properties := &apiextensions.JSONSchemaProps{}
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
				version.Schema.OpenAPIV3Schema, properties, nil); err != nil {
				return err
			}
			structural, err := structuralschema.NewStructural(properties)
			if err != nil {
				return err
			}
			kind := schema.GroupVersionKind{Group: external.Spec.Group, Version: version.Name, Kind: external.Spec.Names.Kind}
			found[kind] = &crd{properties: properties, structural: structural}
		}
		return nil
	})
	return found, err
})

// crdOf returns the CRD of a kind, or nil for a kind of Kubernetes itself.
func crdOf(kind schema.GroupVersionKind) (*crd, error) {
	all, err := crds()
	if err != nil {
		return nil, fmt.Errorf("the CRDs of the module: %w", err)
	}
	return all[kind], nil
}

// setDefaults writes the defaults of the schema.
func (c *crd) setDefaults(content map[string]any) {
	defaulting.Default(content, c.structural)
}

// validate returns why the API server would refuse an object, after defaults are set.
func (c *crd) validate(content map[string]any) error {
	var failed error
	c.ready.Do(func() {
		c.validator, _, failed = validation.NewSchemaValidator(c.properties)
		c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	})
	if failed != nil {
		return failed
	}
	if errs := validation.ValidateCustomResource(nil, content, c.validator); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if c.rules != nil {
		errs, _ := c.rules.Validate(context.Background(), nil, c.structural, content, nil, celconfig.RuntimeCELCostBudget)
		if len(errs) > 0 {
			return errs.ToAggregate()
		}
	}
	return nil
}
