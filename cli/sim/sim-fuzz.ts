/**
 * `headroom sim fuzz`: scenarios generated from seeds, each checked; for the first failing seed, writes the
 * smallest scenario with the same failure.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { coverageRows, missingPaths } from '../../simulator/experiment/fuzz/coverage-table.ts'
import { addCounts } from '../../simulator/experiment/fuzz/coverage.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import type { FuzzDocument } from '../../simulator/experiment/fuzz/document.ts'
import { drawDocument, featuresOf } from '../../simulator/experiment/fuzz/draw.ts'
import { FEATURES } from '../../simulator/experiment/fuzz/features.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import { shrink } from '../../simulator/experiment/fuzz/shrink.ts'
import { SWARM_KINDS } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { EXIT_FAILED, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import type { FuzzAnswer, FuzzFailure, FuzzTask } from '../../services/runs/fuzz-run.ts'
import { createOperatorClients, type OperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { withProgress } from '../output/progress.ts'
import { makeFolder, writeOutput } from '../../services/output-file.ts'
import { runInWorkers } from '../../services/workers/worker-pool.ts'
import { workerUrl } from '../../services/workers/worker-url.ts'

export interface SimFuzzOptions {
  readonly seeds: number
  readonly from: number
  /** Only seeds whose scenario has this feature or kind of fault. */
  readonly drawing?: string
  readonly jobs?: number
  readonly out: string
  readonly coverage?: boolean
  readonly json?: boolean
}

/** Seeds per job of a worker. */
const STRETCH = 25
/** Features and kinds of faults that seeds have or leave out, each by itself. */
const DRAWN: readonly string[] = [...FEATURES, ...SWARM_KINDS]
const MAX_TRIES = 1_500
const SHOWN_FAILURES = 10

export async function simFuzz(file: string | undefined, options: SimFuzzOptions): Promise<number> {
  return file === undefined ? fuzzSeeds(options) : judgeFile(file)
}

/** Checks one scenario from a file, to repeat a failure. */
async function judgeFile(file: string): Promise<number> {
  const operatorClients = createOperatorClients()
  const { digest, violations } = await judge(
    loadScenario(file).scenario,
    operatorClients.openOperatorClient,
  ).finally(() => operatorClients.close())
  for (const { sentence } of violations) process.stdout.write(`${sentence}\n`)
  if (violations.length === 0) process.stdout.write(`ok: every rule holds (digest ${digest})\n`)
  return violations.length === 0 ? EXIT_OK : EXIT_FAILED
}

async function fuzzSeeds(options: SimFuzzOptions): Promise<number> {
  makeFolder(`--out ${options.out}`, options.out)
  const startedAt = performance.now()
  const answers = await withProgress(`${options.seeds} seeds`, (onProgress) =>
    runInWorkers<FuzzTask, FuzzAnswer>(workerUrl('runs/fuzz-worker'), stretchesOf(options), {
      processes: options.jobs ?? availableParallelism(),
      onProgress,
    }),
  )
  const counts = new Map<string, number>()
  for (const answer of answers) addCounts(counts, answer.counts)
  const failures = answers.flatMap((answer) => answer.failures)
  const missing = options.coverage === true ? missingPaths(counts, options.seeds) : []
  const digest = digestOf(answers)
  const took = ((performance.now() - startedAt) / 1000).toFixed(1)
  if (options.json === true) {
    const { seeds, from } = options
    const said = { seeds, from, digest, failures, counts: Object.fromEntries(counts), missing }
    process.stdout.write(`${JSON.stringify(said, null, 2)}\n`)
  } else {
    if (options.coverage === true) for (const row of coverageRows(counts)) process.stdout.write(`${row}\n`)
    for (const failure of failures.slice(0, SHOWN_FAILURES)) process.stdout.write(textOf(failure))
    for (const path of missing) process.stdout.write(`NEVER     ${path}\n`)
    process.stdout.write(
      `${options.seeds} seeds from ${options.from}: ${failures.length} failed; digest ${digest}\n`,
    )
    process.stderr.write(`${took} s\n`)
  }
  const [first] = failures
  if (first !== undefined) await writeShrunk(first, options.out)
  return failures.length + missing.length === 0 ? EXIT_OK : EXIT_FAILED
}

function stretchesOf(options: SimFuzzOptions): FuzzTask[] {
  const seeds = seedsOf(options)
  const count = Math.ceil(seeds.length / STRETCH)
  return Array.from({ length: count }, (_, index) => ({
    seeds: seeds.slice(index * STRETCH, (index + 1) * STRETCH),
  }))
}

/** Returns the matching seeds in order. Throws UsageError when no seed matches `drawing`. */
function seedsOf({ seeds, from, drawing }: SimFuzzOptions): readonly number[] {
  if (drawing !== undefined && !DRAWN.includes(drawing))
    throw new UsageError(`--drawing must be one of ${DRAWN.join(', ')}, got ${JSON.stringify(drawing)}`)
  const found: number[] = []
  for (let seed = from; found.length < seeds; seed++)
    if (drawing === undefined || drawnBy(seed).has(drawing)) found.push(seed)
  return found
}

function drawnBy(seed: number): ReadonlySet<string> {
  const { on, faults } = featuresOf(seed)
  return new Set<string>([...on, ...faults])
}

/** Digest of all runs in the order of their seeds: equal for the same seeds, with any number of workers. */
function digestOf(answers: readonly FuzzAnswer[]): string {
  const hash = createHash('sha256')
  for (const { digests } of answers) for (const digest of digests) hash.update(`${digest}\n`)
  return hash.digest('hex')
}

function textOf({ seed, findings }: FuzzFailure): string {
  return [`FAILED    seed ${seed}\n`, ...findings.map(({ sentence }) => `            ${sentence}\n`)].join('')
}

async function writeShrunk({ seed, findings }: FuzzFailure, folder: string): Promise<void> {
  const [first] = findings
  const rule = first?.rule ?? ''
  const [said = ''] = (first?.sentence ?? '').split('\n')
  const operatorClients = createOperatorClients()
  const { document, tries } = await withProgress(`shrinking seed ${seed}`, (onProgress) => {
    let tried = 0
    const fails = async (one: FuzzDocument): Promise<boolean> => {
      onProgress((tried += 1) / MAX_TRIES)
      return failsBy(one, rule, operatorClients)
    }
    return shrink(drawDocument(seed), fails, MAX_TRIES)
  }).finally(() => operatorClients.close())
  const file = join(folder, `${document.scenario}.scenario.yaml`)
  const text = stringify(
    { ...document, description: `Shrunk from seed ${seed}, which breaks a rule: ${said}` },
    { flowCollectionPadding: true },
  )
  writeOutput(`--out ${folder}`, file, text)
  process.stdout.write(
    `seed ${seed}, reduced in ${tries} tries: ${file}\n  repeat: headroom sim fuzz ${file}\n`,
  )
}

async function failsBy(
  document: FuzzDocument,
  rule: string,
  operatorClients: OperatorClients,
): Promise<boolean> {
  try {
    const { violations } = await judge(scenarioOf(document), operatorClients.openOperatorClient)
    return violations.some((finding) => finding.rule === rule)
  } catch (error) {
    if (error instanceof Error && error.name === 'ScenarioError') return false
    throw error
  }
}
