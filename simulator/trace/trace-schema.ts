/**
 * The trace format as scenario rules, the source of docs/trace-format.md and the published JSON Schema. The
 * readers (task-line.ts, header-line.ts) check by hand, for speed; a test compares the two.
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

const workRule = byValue('kind', {
  duration: record({
    kind: required(choice('duration'), 'GPU work without a pause. The task ends when it is done.'),
    ms: required(ms(1), 'GPU work in ms on an idle GPU, on each GPU alike.'),
  }),
  phases: record({
    kind: required(choice('phases'), 'Alternating work and idle times. The task ends after the last.'),
    phases: required(
      list(pair(ms(0), ms(0)), 0, MAX_ITEMS),
      'Pairs [busy, idle]: GPU work in ms, then idle wall time in ms, which passes whether or ' +
        'not the task is in VRAM. Together 1 or more.',
    ),
  }),
  bursts: record({
    kind: required(
      choice('bursts'),
      'Requests at fixed times. The task ends when all are done and stayMs has passed.',
    ),
    at: required(
      list(pair(ms(0), ms(1)), 0, MAX_ITEMS),
      'Pairs [offset, busy]: wall time in ms since the first start, never decreasing, and GPU ' +
        'work in ms. First in, first out.',
    ),
    stayMs: required(ms(0), 'Minimum wall time since the first start. 1 or more without bursts.'),
  }),
})

export const traceTaskRule = record({
  id: required(name, 'ID, unique in the trace.'),
  at: required(ms(0), 'Time of submission, in ms since the start. Never less than in the line before.'),
  gpus: required(integer(1, MAX_GPUS), 'GPUs, all on one node.'),
  vram_mib: optional(
    integer(0, MAX_VRAM_MIB),
    0,
    'Per GPU. 0 or absent only for a task that uses whole GPUs: everything that may be resident there.',
  ),
  gpu_mode: optional(choice(...GPU_MODES), 'shared', 'Whether it shares its GPUs.'),
  priority: optional(choice(...PRIORITIES), 2, '0 is the highest.'),
  noswap: optional(choice(0, 1), 0, '1: the task is never swapped out.'),
  groups: optional(
    list(name, 0, MAX_GROUPS),
    [],
    'Target groups, any of which suffices; empty: the common pool.',
  ),
  owner: optional(nullable(name), null, 'Owner of the task.'),
  work: required(workRule, 'Work of the task.'),
  alloc: optional(
    list(pair(ms(0), integer(1, MAX_VRAM_MIB)), 0, MAX_ITEMS),
    [],
    'Growth: pairs of wall time in ms since the first start and MiB per GPU from then on, both ' +
      'increasing. Empty: vram_mib from the start.',
  ),
  cancel_at: optional(nullable(ms(0)), null, 'Time at which the owner cancels it, `at` or later.'),
})

export const traceHeaderRule = record({
  trace: required(name, 'Its name.'),
  version: required(choice(TRACE_VERSION), 'Version of the format.'),
  t_unit: required(choice('ms'), 'All times are whole milliseconds.'),
  source: optional(
    nullable(
      record({
        file: required(name, 'File name, without the folder.'),
        sha256: required(name, 'Hash of the uncompressed content, in hex.'),
        licence: optional(nullable(name), null, 'SPDX ID, if known.'),
        origin: optional(nullable(name), null, 'Origin of the data.'),
      }),
    ),
    null,
    'Imported file.',
  ),
  importer: optional(
    nullable(
      record({
        format: required(name, 'Name of the format on the command line.'),
        options: optional(
          dictionary(/^/, 'a name', json, 0, Number.MAX_SAFE_INTEGER),
          {},
          'Options of the import, to repeat it.',
        ),
        synthetic: optional(
          list(name, 0, MAX_ITEMS),
          [],
          'Fields that the source lacks and that were made up: activity, vram_mib.',
        ),
        ignored: optional(
          counts,
          {},
          'Rows that became tasks with a constraint that Headroom does not support, by ' +
            'constraint, before the selection by --from, --to, --sample and --max-gpus.',
        ),
        adjusted: optional(
          counts,
          {},
          'Rows that became tasks with a corrected value, by correction, before the selection.',
        ),
      }),
    ),
    null,
    'How rows were converted to tasks.',
  ),
  rows: optional(integer(0, Number.MAX_SAFE_INTEGER), 0, 'Rows read from the source.'),
  dropped: optional(
    counts,
    {},
    'Dropped rows, by reason. If a row is a task, dropped rows and tasks add up to all rows.',
  ),
})

/** For one line: the first is a header, all others are tasks. */
export function traceLineJsonSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:headroom:trace-line:${TRACE_VERSION}`,
    title: 'A line of a Headroom trace',
    description: 'The first line of a *.trace.jsonl is a header, every other line a task.',
    oneOf: [{ $ref: '#/$defs/header' }, { $ref: '#/$defs/task' }],
    $defs: { header: jsonSchemaOf(traceHeaderRule), task: jsonSchemaOf(traceTaskRule) },
  }
}
