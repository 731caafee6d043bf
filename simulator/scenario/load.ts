/**
 * Loads a scenario from disk or text. Throws ScenarioError with every problem. Only this file of the folder
 * reads the disk.
 */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { buildScenario } from './build.ts'
import { check } from '../document/check.ts'
import { parseDocument } from '../document/document.ts'
import { MAX_JSON_BYTES } from '../document/json-document.ts'
import { ScenarioError } from '../document/problem.ts'
import { type Override, overridden } from '../document/override.ts'
import { type Refuse, refuseIn } from '../document/refusal.ts'
import type { Scenario } from './scenario.ts'
import { scenarioRule } from './schema.ts'

/** A path, or text with the base folder of trace files. `file` is the name used in messages. */
export type ScenarioSource = string | ScenarioText

export interface ScenarioText {
  readonly text: string
  readonly baseDir: string
  readonly file?: string
  /** The only traces that an uploaded text may name, by name, with their paths. */
  readonly traces?: Readonly<Record<string, string>>
}

/** Refuses a valid scenario that does not suit the purpose, at the position of the problem. */
export type Demand = (scenario: Scenario, refuse: Refuse) => void

export interface LoadedScenario {
  readonly scenario: Scenario
  /** Hash of the bytes of the file, in hex. */
  readonly sha256: string
  readonly text: string
  readonly file: string
}

/**
 * Throws ScenarioError, also if the file or a trace cannot be read.
 * @param overrides replace values of the file; `sha256` and `text` remain those of the file
 * @param demand additional requirements of the caller
 */
export function loadScenario(
  source: ScenarioSource,
  overrides: readonly Override[] = [],
  demand?: Demand,
): LoadedScenario {
  const {
    text,
    baseDir,
    file: name,
    traces = null,
  } = typeof source === 'string' ? readText(source) : { file: '(text)', ...source }
  const file =
    overrides.length === 0
      ? name
      : `${name} with ${overrides.map(({ field, value }) => `${field}=${value}`).join(' ')}`
  const { root: asWritten, problems } = parseDocument(text)
  if (asWritten === null) throw problems.toError(file)
  const root = overridden(asWritten, overrides, problems)
  const document = check(root, scenarioRule, problems)
  problems.throwIfAny(file)
  const refuse = refuseIn(root, problems)
  const built = buildScenario(document, baseDir, refuse)
  const scenario = traces === null ? built : withTraces(built, traces, baseDir, refuse)
  if (traces === null) refuseMissingTraces(scenario, refuse)
  demand?.(scenario, refuse)
  problems.throwIfAny(file)
  return { scenario, sha256: createHash('sha256').update(text, 'utf8').digest('hex'), text, file: name }
}

/** The file name of a trace. Read as a scenario, every line of it would be a problem. */
const TRACE = /\.trace\.jsonl(\.gz)?$/

function readText(file: string): ScenarioText & { readonly file: string } {
  const refuse = (detail: string, cause?: unknown): ScenarioError =>
    new ScenarioError(file, [{ line: 1, column: 1, path: '', detail }], 0, { cause })
  let bytes: Buffer
  try {
    const stats = statSync(file)
    if (TRACE.test(file))
      throw refuse('is a trace and no scenario: `headroom sim replay` runs it on a fleet that is given there')
    // A device has no size and no end.
    if (!stats.isFile()) throw refuse('is not a file')
    if (stats.size > MAX_JSON_BYTES) throw refuse(`is larger than ${MAX_JSON_BYTES} bytes`)
    bytes = readFileSync(file)
  } catch (error) {
    throw error instanceof ScenarioError ? error : refuse(unreadableDetail(error), error)
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { text, baseDir: dirname(resolve(file)), file }
  } catch (error) {
    throw refuse('is not UTF-8 text', error)
  }
}

function unreadableDetail(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'no such file'
  return code === 'EACCES' ? 'may not be read' : message
}

/** Resolves only the traces that the source lists, so that messages reveal nothing about other files. */
function withTraces(
  scenario: Scenario,
  traces: Readonly<Record<string, string>>,
  baseDir: string,
  refuse: Refuse,
): Scenario {
  const workload = scenario.workload.map((item, index) => {
    if (item.kind !== 'trace') return item
    const name = relative(baseDir, item.file)
    if (Object.hasOwn(traces, name)) return { ...item, file: traces[name] as string }
    refuse(['workload', index, 'trace'], 'is not the name of a trace here; write traces/NAME.trace.jsonl')
    return item
  })
  return { ...scenario, workload }
}

function refuseMissingTraces({ workload }: Scenario, refuse: Refuse): void {
  for (const [index, item] of workload.entries()) {
    if (item.kind !== 'trace') continue
    const isFile = statSync(item.file, { throwIfNoEntry: false })?.isFile() ?? false
    if (!isFile) refuse(['workload', index, 'trace'], `no such file: ${item.file}`)
  }
}
