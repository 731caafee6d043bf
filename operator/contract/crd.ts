/** CustomResourceDefinitions of the operator's own kinds, made from their definitions. */
import type { TSchema } from 'typebox'
import { API_GROUP, API_VERSION } from './names.ts'
import { type CelRule, OWN_KINDS, type OwnKind } from './policies.ts'

/** A schema as the API server takes it: the structural subset of OpenAPI 3. */
export interface StructuralSchema {
  readonly type: string
  readonly description?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly enum?: readonly string[]
  readonly maxItems?: number
  readonly items?: StructuralSchema
  readonly properties?: Readonly<Record<string, StructuralSchema>>
  readonly required?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1'
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string }
  readonly spec: object
}

export function customResourceDefinitions(): readonly CustomResourceDefinition[] {
  return OWN_KINDS.map(crdOf)
}

export function crdOf(own: OwnKind): CustomResourceDefinition {
  const { kind, plural, shortName, columns, selectableFields } = own
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      scope: 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['headroom'],
      },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          ...(selectableFields.length === 0
            ? {}
            : { selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })) }),
          schema: { openAPIV3Schema: schemaOf(own) },
        },
      ],
    },
  }
}

/** The whole object. */
export function schemaOf({ description, spec, status, rules, specRules }: OwnKind): StructuralSchema {
  return {
    type: 'object',
    description,
    ...(spec === null ? {} : { required: ['spec'] }),
    ...validations(rules),
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object' },
      ...(spec === null ? {} : { spec: { ...structural(spec), ...validations(specRules) } }),
      status: structural(status),
    },
  }
}

function validations(rules: readonly CelRule[]): Partial<StructuralSchema> {
  return rules.length === 0 ? {} : { 'x-kubernetes-validations': rules }
}

/** The keywords of `policies.ts`. */
interface Keywords extends StructuralSchema {
  readonly items?: Keywords
  readonly properties?: Readonly<Record<string, Keywords>>
}

function structural(schema: TSchema): StructuralSchema {
  return structuralOf(schema as unknown as Keywords)
}

function structuralOf(schema: Keywords): StructuralSchema {
  const { type, description, items, properties, required, ...rules } = schema
  return {
    type,
    ...(description === undefined ? {} : { description }),
    ...(type === 'integer' ? { format: 'int64' } : {}),
    ...JSON.parse(JSON.stringify(rules)),
    ...(required === undefined || required.length === 0 ? {} : { required }),
    ...(items === undefined ? {} : { items: structuralOf(items), ...listTypeOf(items) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, field]) => [name, structuralOf(field)]),
          ),
        }),
  }
}

/** Lists of conditions, GPUs and claims are maps, so that several writers may apply parts of them. */
const LIST_KEYS = ['type', 'uuid', 'podUid']

function listTypeOf({ properties = {} }: Keywords): Partial<StructuralSchema> {
  const key = LIST_KEYS.find((name) => properties[name] !== undefined)
  return key === undefined ? {} : { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] }
}
