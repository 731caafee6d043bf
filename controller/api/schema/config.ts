/**
 * The configuration as the API speaks it. Fields, ranges and defaults come from the domain's table, and only
 * from there.
 */
import { Type, type Static, type TSchema, type TUnsafe } from 'typebox'
import {
  CONFIG_RULES,
  DEFAULT_CONFIG,
  type Config,
  type ConfigFields,
  type FieldRule,
} from '../../domain/config.ts'
import { CONFIG_MEANINGS } from '../../domain/config-meanings.ts'
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
} from './fields.ts'
import { DRY_RUN_PARTS, type ImpactBody } from './impact.ts'

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
  revision: count('0 until something is persisted, then 1, 2, …'),
}

export const ConfigSchema: TUnsafe<ConfigFields & { source: Config['source']; revision: number }> =
  Type.Unsafe({
    ...Type.Object({ ...FIELDS, ...ABOUT }),
    $id: 'Config',
    description: 'Settings of the cluster, where they come from, and their revision.',
  })

export type ConfigBody = Static<typeof ConfigSchema>
export const ConfigRef = refTo<ConfigBody>('Config')

const OverSchema = Type.Object(
  {
    gpus: count('GPUs with more promised than their limit, or more resident than their reserve leaves'),
    over_committed_mib: mib('Promised beyond the limits'),
    reserve_deficit_mib: mib('Resident beyond what the reserves leave'),
  },
  {
    description:
      'Nobody leaves because a setting was lowered: what is over then shrinks as tasks end or leave for others',
  },
)
export type OverBody = Static<typeof OverSchema>

interface AboutChange {
  readonly over: OverBody
  readonly dry_run?: boolean
  readonly impact?: ImpactBody
}

/** The answer to a PUT: the configuration as it is now, or with `dry_run` as it would be. */
export const ChangedConfigSchema: TUnsafe<ConfigBody & AboutChange> = Type.Unsafe(
  Type.Object({ ...FIELDS, ...ABOUT, over: OverSchema, ...DRY_RUN_PARTS }),
)
export type ChangedConfigBody = ConfigBody & AboutChange

const WholeConfigSchema: TUnsafe<ConfigFields> = Type.Unsafe(Type.Object(FIELDS))

const RevisionSchema = Type.Object({
  revision: count('1, 2, 3, …'),
  at: instant('When it was stored'),
  author: textOrNull('Who changed it, from the token; null: nobody was asked'),
  changed: list(Type.String(), { description: 'Names of the fields that differ from the revision before' }),
  before: Type.Unsafe<ConfigFields | null>({
    ...Type.Object(FIELDS),
    type: ['object', 'null'],
    description: 'The revision before; null for the first, and where that is no longer kept',
  }),
  after: WholeConfigSchema,
})
export type RevisionBody = Static<typeof RevisionSchema>

export const RevisionPageSchema = Type.Object({
  items: list(RevisionSchema),
  next_before: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'Send it as before for older ones; null: there are none',
  }),
})
export type RevisionPage = Static<typeof RevisionPageSchema>

export const RevisionQuerySchema = closed({
  before: Type.Optional(
    integer(1, Number.MAX_SAFE_INTEGER, { description: 'Only revisions below it, newest first' }),
  ),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})

export const RevisionPathSchema = Type.Object({
  revision: Type.String({
    pattern: '^[1-9]\\d{0,14}$',
    maxLength: 15,
    'x-allowed': 'the number of a revision',
    description: 'Its number',
  }),
})
