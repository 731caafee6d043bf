/**
 * The simulator behind the controller's port: requests over REST run in their own processes and are stored in
 * the data folder.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type {
  RunChoices,
  RunRequest,
  ScenarioFacts,
  Simulation,
  SimulationKind,
} from '../../controller/ports/simulation.ts'
import {
  isOver,
  type RunResidency,
  type SimulationRecord,
  type SimulationSeries,
  type UploadUsage,
} from '../../controller/ports/simulation.ts'
import { packageRoot } from '../package-info.ts'
import { exercisesPort } from './sessions/exercises.ts'
import { SweepFiles } from './jobs/sweep-file.ts'
import { sweepWork } from './jobs/sweep-work.ts'
import {
  DEFAULT_OBJECTIVES,
  OBJECTIVE_FORMAT,
  parseObjective,
  type Objective,
} from '../../simulator/experiment/advisor/objective.ts'
import { uploadFolders } from './library/partial-uploads.ts'
import { traceEntries, tracesPort } from './library/traces.ts'
import {
  DEFAULT_UPLOAD_LIMITS,
  UploadQuota,
  type UploadedFile,
  type UploadLimits,
} from './library/upload-quota.ts'
import { JobProcess } from '../workers/job-process.ts'
import { workerUrl } from '../workers/worker-url.ts'
import { SimulationRegistry } from './jobs/simulation-registry.ts'
import { ScenarioLibrary } from './library/library.ts'
import { SimulationQueue, type Work } from './jobs/queue.ts'
import { newRecord, RecordStore, REPORT, runFile } from './jobs/records.ts'
import { LIMITS, refused } from './library/limits.ts'
import type { RunAnswer, RunJob } from './jobs/run-job.ts'
import { sessionHorizonMs } from './library/scenario-facts.ts'
import { scenarioGate, type ScenarioGate } from './library/scenario-gate.ts'
import { ScenarioReader } from './library/scenario-reader.ts'
import { Sessions } from './sessions/sessions.ts'

export interface SimulationsOptions {
  /** The controller's folder; a subfolder is used. */
  readonly dataDir: string
  readonly log: (line: string) => void
  readonly now?: () => number
  readonly uploads?: UploadLimits
}

export interface Simulations extends Simulation {
  /** Size of all uploads as last measured; null: not yet. */
  readonly uploadBytes: () => number | null
  /** Loads earlier simulations. An unreadable folder is only logged: the controller does not need it. */
  open(): Promise<void>
  /** Ends everything that runs. */
  close(): Promise<void>
}

/** Loads earlier simulations first. */
export async function openSimulations(options: SimulationsOptions): Promise<Simulations> {
  const simulations = createSimulations(options)
  await simulations.open()
  return simulations
}

export function createSimulations(options: SimulationsOptions): Simulations {
  const { dataDir, log, now = Date.now, uploads = DEFAULT_UPLOAD_LIMITS } = options
  const folder = join(dataDir, 'simulations')
  const shipped = fileURLToPath(new URL('scenarios', packageRoot()))
  const reader = new ScenarioReader()
  const { traces, scenarios } = uploadFolders(dataDir)
  const library = new ScenarioLibrary({ shipped, own: scenarios, traces }, reader)
  const quota = uploadQuotaFor(dataDir, uploads, library)
  const { scenario: readScenario, sweep: readSweep } = scenarioGate(library, reader)
  const files = new SweepFiles()
  const store = new RecordStore(join(folder, 'runs'), now)
  const registry = new SimulationRegistry(store, now, (error) =>
    log(`cannot store a simulation: ${String(error)}`),
  )
  const queue = new SimulationQueue(registry, now)
  const sessions = new Sessions(registry, store, now)

  const enqueue = (
    kind: SimulationKind,
    facts: ScenarioFacts,
    choices: RunChoices,
    by: string | null,
    work: (id: string) => Work,
  ) => {
    const retryAfterSeconds = queue.retryAfterSeconds
    if (retryAfterSeconds !== null)
      return refused({ code: 'too_many', detail: 'The queue of simulations is full.', retryAfterSeconds })
    const record = newRecord({ id: randomUUID(), kind, facts, choices, by, now: now() })
    registry.add(record)
    queue.add(record.id, work(record.id))
    return { ok: true as const, value: registry.get(record.id) ?? record }
  }

  return {
    open: () =>
      Promise.all([registry.load(), quota.usageOf(null)])
        .then(() => undefined)
        .catch((error: unknown) =>
          log(`cannot load earlier simulations; the controller continues without them: ${String(error)}`),
        ),
    async close() {
      await sessions.close(STOPPED)
      await queue.close(STOPPED)
      registry.close()
      await reader.close()
      await files.close()
      await registry.settled()
    },
    async run({ scenario, by, seed, untilMs, overcommitPercent }: RunRequest) {
      const read = await readScenario(scenario, untilMs)
      if (!read.ok) return read
      const { source, facts } = read.value
      const choices = { seed, untilMs, overcommitPercent }
      return enqueue('run', facts, choices, by, (id) => runWork({ source, choices }, id, store))
    },
    async sweep(request) {
      const objectives = objectivesOf(request.objectives)
      if (typeof objectives === 'string')
        return refused({ code: 'invalid', field: 'objectives', detail: objectives })
      const { percentages, seeds, fields, untilMs } = request
      const read = await readSweep(
        request.scenario,
        { overcommit: percentages ?? undefined, seeds: seeds ?? undefined, set: fields },
        untilMs,
      )
      if (!read.ok) return read
      const { source, facts, grid } = read.value
      const sweep = { source, untilMs, grid, objectives }
      return enqueue('sweep', facts, { seed: null, untilMs, overcommitPercent: null }, request.by, (id) =>
        sweepWork(sweep, id, store),
      )
    },
    ...sessionsPort(sessions, readScenario),
    ...exercisesPort(sessions, join(shipped, 'exercises')),
    list: () => registry.list(),
    get: (id) => registry.get(id),
    changed: (id, revision, withinMs) => registry.changed(id, revision, withinMs),
    ...resultsPort(registry, store, files),
    remove: (id, reason) => removeRecord(id, reason, { registry, sessions, queue }),
    ...libraryPort(library, readScenario, quota),
    ...tracesPort({ folder: traces, shippedFolder: join(shipped, 'traces'), quota, now }),
    usage: (owner) => usageOf(owner, { library, quota, traces }),
    uploadBytes: () => quota.totalBytes,
  }
}

/** The part of the port for sessions. */
function sessionsPort(
  sessions: Sessions,
  readScenario: ScenarioGate['scenario'],
): Pick<Simulation, 'openSession' | 'control' | 'fork' | 'injectFault' | 'faults' | 'ask'> {
  return {
    async openSession(request) {
      const read = await readScenario(request.scenario, sessionHorizonMs(request.untilMs))
      return read.ok ? sessions.start(read.value, request) : read
    },
    control: (id, command) => sessions.control(id, command),
    fork: (id, snapshot, by) => sessions.fork(id, snapshot, by),
    injectFault: (id, fault, isHidden, by) => sessions.injectFault(id, fault, isHidden, by),
    faults: (id) => sessions.faults(id),
    ask: (id, request) => sessions.ask(id, request),
  }
}

/** The part of the port for results. */
function resultsPort(
  registry: SimulationRegistry,
  store: RecordStore,
  files: SweepFiles,
): Pick<Simulation, 'report' | 'sweepReport' | 'sweepFile' | 'series' | 'residency'> {
  const isSweep = (id: string): boolean => registry.get(id)?.kind === 'sweep'
  const fileOf = async <T extends object>(id: string, name: string): Promise<T | null> =>
    registry.get(id) === undefined ? null : (parsed(await store.readFile(id, name)) as T | null)
  return {
    report: (id) => fileOf(id, REPORT),
    sweepReport: (id) => (isSweep(id) ? store.readFile(id, REPORT) : Promise.resolve(null)),
    async sweepFile(id, format) {
      const report = isSweep(id) ? await store.readFile(id, REPORT) : null
      if (report === null) return { ok: true, value: null }
      const making = files.make({ format, name: registry.get(id)?.scenario ?? id, report })
      return making === null ? refused(FILES_BUSY) : { ok: true, value: await making }
    },
    series: (id, run) => fileOf<SimulationSeries>(id, runFile('series', run)),
    residency: (id, run) => fileOf<RunResidency>(id, runFile('residency', run)),
  }
}

/** The part of the port for the library. */
function libraryPort(
  library: ScenarioLibrary,
  readScenario: ScenarioGate['scenario'],
  quota: UploadQuota,
): Pick<Simulation, 'scenarios' | 'scenario' | 'putScenario' | 'removeScenario' | 'validate'> {
  return {
    scenarios: () => library.list(),
    scenario: (name) => library.get(name),
    async putScenario(text, by) {
      const read = await readScenario({ text }, null)
      if (!read.ok) return read
      const { facts } = read.value
      const put = await library.put(facts.name, text, by, quota)
      return put.ok ? { ok: true, value: facts } : put
    },
    removeScenario: (name, by) => library.remove(name, by),
    async validate(scenario) {
      const read = await readScenario(scenario, null)
      return read.ok ? { ok: true, value: read.value.facts } : read
    },
  }
}

function uploadQuotaFor(dataDir: string, limits: UploadLimits, library: ScenarioLibrary): UploadQuota {
  const { traces } = uploadFolders(dataDir)
  const kept = async () => [...(await library.uploads()), ...(await uploadedTraces(traces))]
  return new UploadQuota({ folder: dataDir, limits, kept })
}

interface Running {
  readonly registry: SimulationRegistry
  readonly sessions: Sessions
  readonly queue: SimulationQueue
}

async function removeRecord(
  id: string,
  reason: string,
  { registry, sessions, queue }: Running,
): Promise<SimulationRecord | undefined> {
  const record = registry.get(id)
  if (record === undefined) return undefined
  if (isOver(record.state)) {
    await registry.remove(id)
    return record
  }
  await (sessions.has(id) ? sessions.end(id, reason) : queue.cancel(id, reason))
  return registry.get(id)
}

async function uploadedTraces(folder: string): Promise<readonly UploadedFile[]> {
  return (await traceEntries(folder)).map(({ createdBy, bytes }) => ({ owner: createdBy, bytes }))
}

interface Kept {
  readonly library: ScenarioLibrary
  readonly quota: UploadQuota
  readonly traces: string
}

async function usageOf(owner: string | null, { library, quota, traces }: Kept): Promise<UploadUsage> {
  const ofOwner = (files: readonly UploadedFile[]): number =>
    files.filter((file) => file.owner === owner).length
  const { ownBytes, totalBytes } = await quota.usageOf(owner)
  const { maxBytes, maxBytesPerOwner } = quota.limits
  return {
    traces: ofOwner(await uploadedTraces(traces)),
    scenarios: ofOwner(await library.uploads()),
    ...{ bytes: ownBytes, maxBytes: maxBytesPerOwner, totalBytes, totalMaxBytes: maxBytes },
  }
}

/** Returns the objectives, or an error text. */
function objectivesOf(texts: readonly string[]): readonly Objective[] | string {
  if (texts.length === 0) return DEFAULT_OBJECTIVES
  const objectives: Objective[] = []
  for (const text of texts) {
    const objective = parseObjective(text)
    if (objective === null) return `an objective must be ${OBJECTIVE_FORMAT}; got ${JSON.stringify(text)}`
    objectives.push(objective)
  }
  return objectives
}

const FILES_BUSY = {
  code: 'too_many',
  detail: 'Too many sweep files are being made.',
  retryAfterSeconds: 2,
} as const
const STOPPED = 'The controller was stopped.'

function runWork(job: RunJob, id: string, store: RecordStore): Work {
  return async ({ signal, onProgress }) => {
    const process = new JobProcess<RunJob, RunAnswer>(workerUrl('simulations/jobs/run-worker'), {
      heapMib: LIMITS.heapMib,
    })
    const end = (): void => void process.end()
    signal.addEventListener('abort', end, { once: true })
    try {
      const { series, residency, ...report } = await process.ask(job, onProgress)
      const { result, timing, operatorFaults } = report
      await store.writeFile(id, runFile('series', null), JSON.stringify(series))
      await store.writeFile(id, runFile('residency', null), JSON.stringify(residency))
      await store.writeFile(
        id,
        REPORT,
        JSON.stringify({ ...result, timing, operator_faults: operatorFaults }),
      )
    } finally {
      signal.removeEventListener('abort', end)
      await process.end()
    }
  }
}

function parsed(text: string | null): object | null {
  return text === null ? null : (JSON.parse(text) as object)
}
