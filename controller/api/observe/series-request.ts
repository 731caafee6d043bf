/** The parameters of GET /series, read; each refusal names its parameter. */
import type { Views } from '../../query/views.ts'
import type { Instant } from '../../../protocol/units.ts'
import { MEASURES, type MeasureName } from '../../series/measures.ts'
import { CLUSTER, type ScopeRef, type SeriesQuery } from '../../series/query.ts'
import { gpuKey } from '../../series/node-sampler.ts'
import { invalidField } from '../http/errors.ts'
import { instantIn } from '../http/instant.ts'
import { nodeIdOf } from '../http/names.ts'
import type { SeriesQueryParameters } from './series-schema.ts'

const DEFAULTS = {
  names: 'utilization_percent,starvation_percent',
  scope: 'cluster',
  from: '-1h',
  to: 'now',
  max_points: 500,
} as const

/** @throws ApiProblem for what is not understood or not there. */
export function seriesQueryOf(sent: SeriesQueryParameters, views: Views): SeriesQuery {
  const now = views.now()
  const names = namesOf(sent.names ?? DEFAULTS.names)
  const scopes = scopesOf(sent.scope ?? DEFAULTS.scope, views)
  const from = instantOf('from', sent.from ?? DEFAULTS.from, now)
  const to = instantOf('to', sent.to ?? DEFAULTS.to, now)
  if (from < 0) throw invalidField('/from', 'query parameter from must not be before 1970')
  if (from >= to) throw invalidField('/from', 'query parameter from must be earlier than to')
  for (const name of names) {
    const kinds = MEASURES[name].kinds
    const other = scopes.find(({ kind }) => !kinds.includes(kind))
    if (other !== undefined)
      throw invalidField(
        '/names',
        `${name} is available only for ${kinds.join(' and ')}, not for ${textOf(other)}`,
      )
  }
  return { names, scopes, from, to, maxPoints: sent.max_points ?? DEFAULTS.max_points }
}

/** A scope as it is written in the parameter. */
export function textOf({ kind, key }: ScopeRef): string {
  return kind === 'cluster' ? kind : `${kind}:${key}`
}

function namesOf(text: string): readonly MeasureName[] {
  // The schema has them all known.
  return unique(text.split(',')) as readonly MeasureName[]
}

function scopesOf(text: string, views: Views): readonly ScopeRef[] {
  const scopes = unique(text.split(',')).flatMap((part) => scopesIn(part, views))
  const byText = new Map(scopes.map((scope) => [textOf(scope), scope]))
  return [...byText.values()]
}

function scopesIn(text: string, views: Views): readonly ScopeRef[] {
  if (text === 'cluster') return [CLUSTER]
  const [, kind, id = ''] = /^(group|node|gpu):(.+)$/s.exec(text) ?? []
  if (kind === 'gpu') return gpusIn(text, id, views)
  if (kind !== 'group' && kind !== 'node')
    throw badScope(text, 'must be cluster, group:<id>, node:<node_id> or gpu:<node_id>/<index>')
  if (id === '*')
    return [...(kind === 'group' ? views.groups() : views.nodes())].map((one) => ({ kind, key: one.id }))
  const found = kind === 'group' ? views.group(id) : views.node(nodeIdOf(views, 'scope', id))
  if (found === undefined) throw badScope(text, `must name a known ${kind}`)
  return [{ kind, key: found.id }]
}

function gpusIn(text: string, id: string, views: Views): readonly ScopeRef[] {
  const slash = id.lastIndexOf('/')
  const node = slash < 1 ? undefined : views.node(nodeIdOf(views, 'scope', id.slice(0, slash)))
  if (node === undefined) throw badScope(text, 'must name a known node, as gpu:<node_id>/<index>')
  const wanted = id.slice(slash + 1)
  const gpus = node.gpus.filter(({ index }) => wanted === '*' || wanted === String(index))
  if (gpus.length === 0)
    throw badScope(
      text,
      `must name a GPU of that node: ${node.gpus.map(({ index }) => index).join(', ') || 'it has none'}`,
    )
  return gpus.map(({ index }) => ({ kind: 'gpu', key: gpuKey(node.id, index) }))
}

function badScope(text: string, allowed: string) {
  return invalidField('/scope', `query parameter scope ${allowed}, got ${shown(text)}`)
}

const RELATIVE = /^-(\d{1,6})([smhdw])$/
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i

function instantOf(name: 'from' | 'to', text: string, now: Instant): Instant {
  if (text === 'now') return now
  const [, count, unit] = RELATIVE.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  const at = RFC_3339.test(text) ? instantIn(text) : null
  if (at === null) {
    throw invalidField(
      `/${name}`,
      `query parameter ${name} must be RFC 3339 (2026-01-02T03:04:05Z), now, or a time before now such ` +
        `as -90s, -15m, -1h, -7d or -2w; got ${shown(text)}`,
    )
  }
  return at
}

function unique(parts: readonly string[]): readonly string[] {
  return [...new Set(parts)]
}

const SHOWN_LENGTH = 60

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text)
}
