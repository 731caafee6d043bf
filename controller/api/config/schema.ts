/**
 * Schemas of the configuration. Fields, ranges and defaults come only from the table in the domain.
 */
import { Type, type Static, type TSchema, type TUnsafe } from 'typebox'
import {
  CONFIG_RULES,
  DEFAULT_CONFIG,
  type Config,
  type ConfigFields,
  type FieldRule,
} from '../../model/config.ts'
import { CONFIG_MEANINGS } from '../../model/config-meanings.ts'
import {
  closed,
  count,
  instant,
  integer,
  integerOrNull,
  list,
  mib,
  oneOf,
  refTo,
  textOrNull,
} from '../http/fields-schema.ts'
import { DRY_RUN_PARTS, type ImpactBody } from './impact-schema.ts'

function fieldSchema(name: keyof ConfigFields): TSchema {
  const rule: FieldRule = CONFIG_RULES[name]
  const options = { default: DEFAULT_CONFIG[name], description: CONFIG_MEANINGS[name] }
  if (rule.kind === 'choice') return oneOf(rule.choices, options)
  return rule.nullable ? integerOrNull(rule.min, rule.max, options) : integer(rule.min, rule.max, options)
}

const FIELD_NAMES = Object.keys(CONFIG_RULES) as (keyof ConfigFields)[]
const FIELDS = Object.fromEntries(FIELD_NAMES.map((name) => [name, fieldSchema(name)]))

/** PUT /config: any of the fields, at least one. */
export const ConfigChangeSchema: TUnsafe<Partial<ConfigFields>> = Type.Unsafe({
  ...Type.Partial(Type.Object(FIELDS)),
  additionalProperties: false,
  minProperties: 1,
  examples: [{ default_vram_overcommit_percent: 20 }],
})

const ABOUT = {
  source: oneOf(['environment', 'persisted'], {
    description: 'environment until the first successful PUT, persisted from then on',
  }),
  revision: count('0 until a configuration is persisted, then 1, 2, …'),
}

export const ConfigSchema: TUnsafe<ConfigFields & { source: Config['source']; revision: number }> =
  Type.Unsafe({
    ...Type.Object({ ...FIELDS, ...ABOUT }),
    $id: 'Config',
    description: 'Cluster settings with their source and revision.',
  })

export type ConfigBody = Static<typeof ConfigSchema>
export const ConfigRef = refTo<ConfigBody>('Config')

const OverSchema = Type.Object(
  {
    gpus: count('GPUs over their commit limit, or with a reserve deficit'),
    over_committed_mib: mib('VRAM committed beyond the commit limits'),
    reserve_deficit_mib: mib('Resident VRAM that occupies the reserves'),
  },
  {
    description:
      'Lowering a setting does not swap out tasks: the excess shrinks as tasks end or are swapped out',
  },
)
export type OverBody = Static<typeof OverSchema>

interface AboutChange {
  readonly over: OverBody
  readonly dry_run?: boolean
  readonly impact?: ImpactBody
}

/** The response to a PUT: the new configuration, or with `dry_run` the resulting one. */
export const ChangedConfigSchema: TUnsafe<ConfigBody & AboutChange> = Type.Unsafe(
  Type.Object({ ...FIELDS, ...ABOUT, over: OverSchema, ...DRY_RUN_PARTS }),
)
export type ChangedConfigBody = ConfigBody & AboutChange

const WholeConfigSchema: TUnsafe<ConfigFields> = Type.Unsafe(Type.Object(FIELDS))

const RevisionSchema = Type.Object({
  revision: count('1, 2, 3, …'),
  at: instant('When the revision was stored'),
  author: textOrNull('Author of the change, from the token; null: no token required'),
  changed: list(Type.String(), { description: 'Fields that differ from the previous revision' }),
  before: Type.Unsafe<ConfigFields | null>({
    ...Type.Object(FIELDS),
    type: ['object', 'null'],
    description: 'Previous revision; null for the first, or if it is no longer stored',
  }),
  after: WholeConfigSchema,
})
export type RevisionBody = Static<typeof RevisionSchema>

export const RevisionPageSchema = Type.Object({
  items: list(RevisionSchema),
  next_before: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'Send it as `before` for older revisions; null: no older revisions',
  }),
})
export type RevisionPage = Static<typeof RevisionPageSchema>

export const RevisionQuerySchema = closed({
  before: Type.Optional(
    integer(1, Number.MAX_SAFE_INTEGER, { description: 'Only revisions with a lower number, newest first' }),
  ),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})

export const RevisionPathSchema = Type.Object({
  revision: Type.String({
    pattern: '^[1-9]\\d{0,14}$',
    maxLength: 15,
    'x-allowed': 'the number of a revision',
    description: 'Revision number',
  }),
})
