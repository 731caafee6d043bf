/**
 * Pods per second that are ungated and bound: by the stock scheduler alone, and by the operator with the
 * scheduler of the chart. Another controller holds the pods first, and lets them all go at once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { NODES } from '../../../operator/ports/kube-api.ts'
import type { DurationMs, Instant, Mib } from '../../../protocol/units.ts'
import { freePort } from '../../support/free-port.ts'
import { STACK_NAMESPACE } from '../../support/kubernetes/account.ts'
import { callerCertificates, startOperatorOn } from '../../support/kubernetes/components.ts'
import { ControlPlane } from '../../support/kubernetes/control-plane.ts'
import type { RunningCommand } from '../../support/running-command.ts'
import { cpuMs, residentMib } from '../process-use.ts'
import { type Asked, askedBy, isWrite } from './audit.ts'
import { BoundPods } from './bound-pods.ts'
import { addHeld, addNodes, addPods, headroomPod, release, stockPod } from './cluster-load.ts'

export interface Load {
  readonly nodes: number
  readonly pods: number
  /** Pods of the cluster when memory and the lists are measured. */
  readonly allPods: number
}

export interface StockFigures {
  readonly podsPerS: number
  readonly schedulerMsPerPod: number
}

export interface OperatorFigures extends StockFigures {
  readonly boundPerS: number
  readonly operatorMsPerPod: number
  readonly seconds: number
  /** By what was asked. */
  readonly writes: ReadonlyMap<string, number>
  readonly rss: { readonly now: Mib; readonly peak: Mib }
  readonly relistMs: DurationMs
  readonly readyMs: DurationMs
}

const LOOK_EVERY_MS: DurationMs = 100
const QUIET_MS: DurationMs = 12_000
const WITHIN_MS: DurationMs = 900_000
const OPERATOR = `system:serviceaccount:${STACK_NAMESPACE}:headroom-operator`

export async function measureStock({ nodes, pods }: Load): Promise<StockFigures> {
  const plane = await ControlPlane.start()
  try {
    const api = plane.client()
    await addNodes(api, nodes)
    await addHeld(api, pods, stockPod)
    const { pid } = await plane.startDefaultScheduler()
    await until('the scheduler has read the cluster', () => cpuIsQuiet(pid))
    const bound = await BoundPods.follow(plane.client())
    const [before, startedAt] = [cpuMs(pid), Date.now()]
    await release(api, pods)
    await until(`${pods} pods are bound`, () => bound.count === pods)
    await bound.stop()
    return {
      podsPerS: (1000 * pods) / (bound.lastAt - startedAt),
      schedulerMsPerPod: (cpuMs(pid) - before) / pods,
    }
  } finally {
    await plane.stop()
  }
}

export async function measureOperator({ nodes, pods, allPods }: Load): Promise<OperatorFigures> {
  const plane = await ControlPlane.start()
  const started: RunningCommand[] = []
  const start = async (port: number): Promise<RunningCommand> => {
    const command = await startOperatorOn(plane, port, '--lease', '15s')
    started.push(command)
    return command
  }
  try {
    const api = plane.client()
    await addNodes(api, nodes)
    await addHeld(api, pods, headroomPod)
    const port = await freePort()
    const operator = await start(port)
    const [member] = await plane.startScheduler(port, await callerCertificates(plane))
    const scheduler = member?.pid ?? 0
    await until('both have read the cluster', () => bothAreQuiet(plane, scheduler, operator))
    const bound = await BoundPods.follow(plane.client())
    const pid = operator.process.pid ?? 0
    const [before, schedulerBefore, startedAt] = [cpuMs(pid), cpuMs(scheduler), Date.now()]
    await release(api, pods)
    await until(`${pods} pods are bound`, () => bound.count === pods, operator)
    await until(`${pods} pods have their condition`, () => bound.reported === pods, operator)
    const [after, schedulerAfter] = [cpuMs(pid), cpuMs(scheduler)]
    const writes = await settledWrites(plane, startedAt)
    const lastAt = Math.max(...writes.map(({ answeredAt }) => answeredAt))
    await bound.stop()
    await addPods(api, allPods - pods, (name) => headroomPod(name, '80Gi'))
    await until('the operator has told the other pods why they wait', () =>
      bothAreQuiet(plane, pid, operator),
    )
    const rss = residentMib(pid)
    operator.process.kill('SIGKILL')
    await operator.ended
    const restartedAt = Date.now()
    await (await start(port)).says(/leads, term/)
    return {
      ...{ podsPerS: (1000 * pods) / (lastAt - startedAt), rss, relistMs: relistMs(plane, restartedAt) },
      boundPerS: (1000 * pods) / (bound.lastAt - startedAt),
      schedulerMsPerPod: (schedulerAfter - schedulerBefore) / pods,
      operatorMsPerPod: (after - before) / pods,
      seconds: (lastAt - startedAt) / 1000,
      writes: countOf(writes),
      readyMs: Date.now() - restartedAt,
    }
  } finally {
    for (const command of started) command.process.kill('SIGKILL')
    await plane.stop()
  }
}

/** Writes of the operator since then, once it has not written for a while. */
async function settledWrites(plane: ControlPlane, since: Instant): Promise<readonly Asked[]> {
  for (;;) {
    const writes = askedBy(plane.auditLog, OPERATOR).filter((each) => isWrite(each) && each.at >= since)
    const last = Math.max(...writes.map(({ answeredAt }) => answeredAt))
    if (Date.now() - last > QUIET_MS) return writes
    await pause(1_000)
  }
}

/** From the first list of a new operator to the end of the last one. */
function relistMs(plane: ControlPlane, since: Instant): DurationMs {
  const lists = askedBy(plane.auditLog, OPERATOR).filter(
    ({ what, at }) => what.startsWith('list ') && at >= since,
  )
  return Math.max(...lists.map(({ answeredAt }) => answeredAt)) - Math.min(...lists.map(({ at }) => at))
}

function countOf(writes: readonly Asked[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { what, code } of writes) {
    const name = code < 300 ? what : `${what} (${code})`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

/** They use less than a tenth of a core, and the operator has reported every node. */
async function bothAreQuiet(plane: ControlPlane, pid: number, operator: RunningCommand): Promise<boolean> {
  const nodes = (await plane.client().list(NODES)).items.length
  const known = askedBy(plane.auditLog, OPERATOR).filter(({ what }) => what === 'create gpunodes').length
  return known >= nodes && (await cpuIsQuiet(pid)) && (await cpuIsQuiet(operator.process.pid ?? 0))
}

async function cpuIsQuiet(pid: number): Promise<boolean> {
  const before = cpuMs(pid)
  await pause(2_000)
  return cpuMs(pid) - before < 200
}

async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  operator?: RunningCommand,
): Promise<void> {
  const end = performance.now() + WITHIN_MS
  while (!(await isSo())) {
    if (performance.now() > end)
      throw new Error(`not within ${WITHIN_MS / 1000} s: ${what}; ${operator?.output()}`)
    await pause(LOOK_EVERY_MS)
  }
}
