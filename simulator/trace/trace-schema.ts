/**
 * The trace format in the words of scenario rules: docs/trace-format.md and the published JSON Schema are
 * made of it. The readers (task-line.ts, header-line.ts) check by hand, for speed; a test holds that they
 * take and refuse the same.
 */
import { jsonSchemaOf, type JsonSchema } from '../document/json-schema.ts'
import {
  byValue,
  choice,
  dictionary,
  integer,
  json,
  list,
  nullable,
  optional,
  pair,
  record,
  required,
  type Rule,
  text,
} from '../document/rule.ts'
import { TRACE_VERSION } from './trace-format.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { GPU_MODES, PRIORITIES } from '../../protocol/units.ts'

const MAX_MS = Number.MAX_SAFE_INTEGER
const MAX_GPUS = 1024
const MAX_GROUPS = 64
const MAX_ITEMS = Number.MAX_SAFE_INTEGER

const ms = (least: number): Rule<number> => integer(least, MAX_MS)
const name = text(256)
const counts = dictionary(/^/, 'a name', integer(0, Number.MAX_SAFE_INTEGER), 0, Number.MAX_SAFE_INTEGER)

export const workRule = byValue('kind', {
  duration: record({
    kind: required(choice('duration'), 'GPU work without a pause. The task ends when it is done.'),
    ms: required(ms(1), 'GPU work in ms, as long as it takes on an idle GPU, on each GPU alike.'),
  }),
  phases: record({
    kind: required(choice('phases'), 'Work and idleness in turn. The task ends after the last.'),
    phases: required(
      list(pair(ms(0), ms(0)), 0, MAX_ITEMS),
      'Pairs [busy, idle]: GPU work in ms, then ms of wall time without any, which pass whether or not the task is in VRAM. Together 1 or more.',
    ),
  }),
  bursts: record({
    kind: required(
      choice('bursts'),
      'Requests that come when they come. The task ends when all are done and it has stayed long enough.',
    ),
    at: required(
      list(pair(ms(0), ms(1)), 0, MAX_ITEMS),
      'Pairs [offset, busy]: ms of wall time since its first start, never falling, and GPU work in ms. First in, first out.',
    ),
    stayMs: required(
      ms(0),
      'It does not end before this wall time since its first start. 1 or more when there are no bursts.',
    ),
  }),
})

export const traceTaskRule = record({
  id: required(name, 'Its id, unique in the trace.'),
  at: required(ms(0), 'When it is submitted, in ms since the beginning. Never less than in the line before.'),
  gpus: required(integer(1, MAX_GPUS), 'GPUs, all on one node.'),
  vram_mib: optional(
    integer(0, MAX_VRAM_MIB),
    0,
    'For each GPU. 0 or left out only when it takes whole GPUs: all that may be resident there.',
  ),
  gpu_mode: optional(choice(...GPU_MODES), 'shared', 'Whether it shares its GPUs.'),
  priority: optional(choice(...PRIORITIES), 2, '0 is highest.'),
  noswap: optional(choice(0, 1), 0, '1: it stays in VRAM.'),
  groups: optional(
    list(name, 0, MAX_GROUPS),
    [],
    'Groups it targets, any of which will do; none is the common pool.',
  ),
  owner: optional(nullable(name), null, 'Who submits it.'),
  work: required(workRule, 'What it does with its GPUs.'),
  alloc: optional(
    list(pair(ms(0), integer(1, MAX_VRAM_MIB)), 0, MAX_ITEMS),
    [],
    'What it really uses as it grows: pairs of ms of wall time since its first start and MiB on each GPU from then on, both rising. Empty: vram_mib at the start.',
  ),
  cancel_at: optional(nullable(ms(0)), null, 'When its owner cancels it, at `at` or later.'),
})

export const traceHeaderRule = record({
  trace: required(name, 'Its name.'),
  version: required(choice(TRACE_VERSION), 'Of the format.'),
  t_unit: required(choice('ms'), 'All times are whole milliseconds.'),
  source: optional(
    nullable(
      record({
        file: required(name, 'Its name, without the folder.'),
        sha256: required(name, 'Of its content, uncompressed, in hex.'),
        licence: optional(nullable(name), null, 'SPDX id, where it is known.'),
        origin: optional(nullable(name), null, 'What data it is.'),
      }),
    ),
    null,
    'The foreign file that it was imported from.',
  ),
  importer: optional(
    nullable(
      record({
        format: required(name, 'The word for it on the command line.'),
        options: optional(
          dictionary(/^/, 'a name', json, 0, Number.MAX_SAFE_INTEGER),
          {},
          'Whoever repeats the import gives the same.',
        ),
        synthetic: optional(
          list(name, 0, MAX_ITEMS),
          [],
          'What the source does not know and was made up: activity, vram_mib.',
        ),
        ignored: optional(
          counts,
          {},
          'Rows that became tasks with a constraint that Headroom has no word for, by constraint, before --from, --to, --sample and --max-gpus chose among them.',
        ),
        adjusted: optional(
          counts,
          {},
          'Rows that became tasks with a corrected value, by correction, before options chose among them.',
        ),
      }),
    ),
    null,
    'How rows became tasks.',
  ),
  rows: optional(integer(0, Number.MAX_SAFE_INTEGER), 0, 'Rows read from the source.'),
  dropped: optional(
    counts,
    {},
    'Rows that were not kept, by reason. Where a row is a task, this and the tasks make up the rows.',
  ),
})

/** Of one line: the first is a header, all others are tasks. */
export function traceLineJsonSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:headroom:trace-line:${TRACE_VERSION}`,
    title: 'A line of a Headroom trace',
    description: 'The first line of a *.trace.jsonl is a header, every other one a task.',
    oneOf: [{ $ref: '#/$defs/header' }, { $ref: '#/$defs/task' }],
    $defs: { header: jsonSchemaOf(traceHeaderRule), task: jsonSchemaOf(traceTaskRule) },
  }
}
