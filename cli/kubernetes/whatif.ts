/** `headroom whatif`: of a controller its forecasts; of what kubectl prints the sweep of a scenario. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { type ClusterPlan, clusterScenario, PlanError } from '../../operator/plan/cluster-scenario.ts'
import { isFields } from '../../operator/plan/plan-fields.ts'
import type { Mib } from '../../protocol/units.ts'
import { grouped } from '../../protocol/grouped-digits.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { checkPlace, writeOutput } from '../../services/output-file.ts'
import type { ActivityModelName } from '../../simulator/trace/activity.ts'
import { parseVramMap } from '../../simulator/trace/import/vram-map.ts'
import { fileFailure } from '../command/file-failure.ts'
import type { ServerOption } from '../command/session.ts'
import { whatifLive } from '../config/whatif-live.ts'
import { plural } from '../output/figures.ts'
import { visible } from '../output/terminal-text.ts'
import { simSweep, type SimSweepOptions } from '../sim/sim-sweep.ts'

export interface WhatifOptions
  extends Pick<SimSweepOptions, 'seeds' | 'objective' | 'jobs' | 'out' | 'json'>, ServerOption {
  readonly overcommit: readonly number[]
  readonly kubernetes?: string
  readonly podVram?: Mib
  readonly vramMap?: string
  readonly activity: ActivityModelName
  readonly until: string
  readonly scenario?: string
}

/** The largest clusters print some hundred megabytes. */
const MAX_FILE_BYTES = 512 * 1024 * 1024
const REDELIVER_MS = 30_000

export async function whatif(options: WhatifOptions): Promise<number> {
  const { kubernetes, podVram, vramMap, activity, until, scenario, server, tokenFile, ...sweep } = options
  if (kubernetes === undefined) return live(options)
  if (scenario !== undefined) checkPlace(`--scenario ${scenario}`, scenario)
  const objects = kubernetes.split(',').flatMap((file) => objectsOf(file.trim()))
  const plan = planned(objects, {
    vramByModel: vramMap === undefined ? new Map() : parseVramMap(vramMap),
    podVramMib: podVram ?? null,
    activity,
    until,
  })
  // With --json, stdout is the JSON of the sweep alone.
  const tell = options.json === true ? process.stderr : process.stdout
  tell.write(`${summaryOf(plan).map(visible).join('\n')}\n\n`)
  const text = stringify(plan.scenario, { lineWidth: 0 })
  if (scenario !== undefined) writeOutput(`--scenario ${scenario}`, scenario, text)
  const folder = mkdtempSync(join(tmpdir(), 'headroom-whatif-'))
  try {
    const file = join(folder, 'kubernetes-whatif.scenario.yaml')
    writeFileSync(file, text)
    return await simSweep(file, { ...sweep, journal: false, redeliver: REDELIVER_MS })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The options of a simulation say nothing about a controller. */
function live({ podVram, vramMap, scenario, out, objective, ...options }: WhatifOptions): Promise<number> {
  const ofSimulations = {
    '--pod-vram': podVram,
    '--vram-map': vramMap,
    '--scenario': scenario,
    '--out': out,
    '--objective': objective,
  }
  for (const [name, value] of Object.entries(ofSimulations))
    if (value !== undefined) throw new UsageError(`${name} requires --kubernetes.`)
  return whatifLive(options)
}

function planned(...[objects, options]: Parameters<typeof clusterScenario>): ClusterPlan {
  try {
    return clusterScenario(objects, options)
  } catch (error) {
    if (error instanceof PlanError) throw new UsageError(`--kubernetes: ${error.message}`)
    throw error
  }
}

/** Items of a list, or the one object of the file. */
function objectsOf(file: string): readonly unknown[] {
  const document = read(file)
  if (!isFields(document) || typeof document['kind'] !== 'string')
    throw new UsageError(`--kubernetes ${file}: not a Kubernetes object. Use kubectl get … -o json.`)
  const { kind } = document
  if (!kind.endsWith('List')) return [document]
  if (!Array.isArray(document['items']))
    throw new UsageError(`--kubernetes ${file}: items must be a list. Use kubectl get … -o json.`)
  // The API server names the kind of items once, kubectl with each of them.
  const ofItems = kind.slice(0, -'List'.length)
  return document['items'].map((item: unknown) =>
    isFields(item) && item['kind'] === undefined ? { ...item, kind: ofItems } : item,
  )
}

function read(file: string): unknown {
  let text = ''
  try {
    if (statSync(file).size > MAX_FILE_BYTES)
      throw new UsageError(`--kubernetes ${file}: larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB.`)
    text = readFileSync(file, 'utf8')
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new UsageError(`--kubernetes ${file}: ${notJson(text, error)} Use kubectl get … -o json.`)
    const why = fileFailure(error)
    throw why === null ? error : new UsageError(`--kubernetes ${file}: ${why}`)
  }
}

/** Output of kubectl that was cut off, or never written, differs from text of another kind. */
function notJson(text: string, { message }: SyntaxError): string {
  if (text.trim() === '') return 'the file is empty.'
  // Some messages of the parser have no position.
  const at = /at position (\d+)/.exec(message)?.[1]
  const end = text.trimEnd().length
  const isCutOff = /^Un(terminated|expected end)/.test(message) || (at !== undefined && Number(at) >= end)
  if (isCutOff) return `the file ends early, in line ${lineAt(text, end)}.`
  return at === undefined ? 'not JSON.' : `not JSON, in line ${lineAt(text, Number(at))}.`
}

function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

/** What was found, for a reader who knows the cluster. */
function summaryOf({ nodes, pods, notes }: ClusterPlan): readonly string[] {
  const gpus = nodes.reduce((sum, node) => sum + node.gpus, 0)
  const vramMib = nodes.reduce((sum, node) => sum + node.gpus * node.vramMib, 0)
  const running = pods.filter(({ isRunning }) => isRunning).length
  const neededMib = pods.reduce((sum, pod) => sum + pod.gpus * (pod.vramMib ?? 0), 0)
  const whole = pods.filter(({ vramMib: mib }) => mib === null)
  const wholeGpus = whole.reduce((sum, pod) => sum + pod.gpus, 0)
  const ofPods =
    `${plural(pods.length, 'GPU pod')} (${running} running): ${grouped(neededMib)} MiB of VRAM` +
    (whole.length === 0 ? '' : `, and ${plural(wholeGpus, 'whole GPU')} for ${plural(whole.length, 'pod')}`)
  const total = `${plural(gpus, 'GPU')}, ${grouped(vramMib)} MiB of VRAM`
  return [`${plural(nodes.length, 'node')} with ${total}`, ofPods, ...notes]
}
