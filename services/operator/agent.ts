/** `headroom operator agent`: moves VRAM of the pods of one node, as the operator orders. */
import { mkdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { gauge, Metrics } from '../../controller/api/metrics/metrics.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { SocketWatch } from '../../gpu-server/devices/socket-watch.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { PodAgent } from '../../gpu-server/pods/pod-agent.ts'
import { PodCgroups } from '../../gpu-server/pods/pod-cgroups.ts'
import { lockFolder } from '../../gpu-server/state-lock.ts'
import { AgentClient, type AgentClientOptions } from '../../operator/adapters/agent-client.ts'
import { swapSetting } from '../../operator/contract/variables.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { adminServer, listenOn } from '../admin-server.ts'
import { acceleratorOf, type DeviceChoice } from '../gpu-server/accelerator-of.ts'

export interface AgentOptions extends DeviceChoice {
  readonly node: string
  readonly stateFolder: string
  readonly cgroups: string
  /** Absent: by the device. */
  readonly hostSwapMib?: Mib
  readonly idleAfterMs: DurationMs
  readonly onNote: (line: string) => void
}

export interface ReleaseOptions extends AgentOptions {
  readonly admin: { readonly host: string; readonly port: number }
}

export interface AgentProcessOptions extends ReleaseOptions {
  readonly operator: AgentClientOptions
}

export interface RunningAgent {
  readonly adminPort: number
  /** Every pod stays where it is. */
  stop(): Promise<void>
}

const SAMPLE_EVERY_MS = 1_000
const RETRY_MS = 1_000
/** Another operator leads within two seconds of a planned end. */
const FIRST_RETRIES = 8
const FIRST_RETRY_MS = 250
const HEARD_WITHIN_MS = 15_000
const RELEASE_EVERY_MS = 2_000
export const ALL_BACK = 'Every pod of this node is in VRAM.'

/** Rejects with StartFault, UsageError, AcceleratorFault or StateFault. */
export async function startAgent(options: AgentProcessOptions): Promise<RunningAgent> {
  let sent = new AbortController()
  const opened = await openAgent(options, () => sent.abort())
  const { agent } = opened
  const client = new AgentClient(options.operator)
  const ended = new AbortController()
  const { signal } = ended
  let answeredAt: Instant = 0
  const isHeard = (): boolean => Date.now() - answeredAt < HEARD_WITHIN_MS
  const admin = adminServer(
    () => metricsOf(agent, isHeard).text(),
    () => (isHeard() ? null : 'the operator does not answer'),
    true,
  )
  const adminPort = await listenOn(admin, options.admin, '--admin').catch(async (error: unknown) => {
    await opened.close()
    throw error
  })
  const noted = onChange(options.onNote)
  const report = async (): Promise<void> => {
    const { signal: isOutdated } = (sent = new AbortController())
    const answer = await client.report(agent.report(), isOutdated).catch((error: unknown) => {
      if (isOutdated.aborted) return null
      throw error
    })
    if (signal.aborted || answer === null) return
    agent.obey(answer)
    answeredAt = Date.now()
    noted('the operator answers')
  }
  const sampled = onChange(options.onNote)
  const loops = [
    repeat(signal, 0, report, (error) => noted(`the operator cannot be reached: ${errorText(error)}`)),
    repeat(
      signal,
      SAMPLE_EVERY_MS,
      () => agent.sample(),
      (error) => sampled(`the GPUs cannot be sampled: ${errorText(error)}`),
    ),
  ]
  return {
    adminPort,
    async stop() {
      ended.abort()
      client.close()
      await Promise.all(loops)
      admin.close()
      admin.closeAllConnections()
      await opened.close()
    },
  }
}

/**
 * Brings back every pod that is out, and stays: it is ready once none is left. One that cannot return is
 * tried again. Rejects as `startAgent`.
 */
export async function startRelease(options: ReleaseOptions): Promise<RunningAgent> {
  const { agent, close } = await openAgent(options)
  const ended = new AbortController()
  const { signal } = ended
  let left: readonly string[] = ['not tried yet']
  const noted = onChange(options.onNote)
  const whyNotReady = (): string | null => (left.length === 0 ? null : left.join('; '))
  const admin = adminServer(() => metricsOf(agent, () => false).text(), whyNotReady, true)
  const adminPort = await listenOn(admin, options.admin, '--admin').catch(async (error: unknown) => {
    await close()
    throw error
  })
  const tried = async (): Promise<void> => {
    left = await agent.release()
    noted(left.length === 0 ? ALL_BACK : `some pods are still swapped out: ${left.join('; ')}`)
  }
  const loop = repeat(signal, RELEASE_EVERY_MS, tried, (error) => noted(errorText(error)))
  return {
    adminPort,
    async stop() {
      ended.abort()
      await loop
      admin.close()
      admin.closeAllConnections()
      await close()
    },
  }
}

/** Brings back every pod that is out. Resolves with why not, for each that stays. */
export async function releasePods(options: AgentOptions): Promise<readonly string[]> {
  const { agent, close } = await openAgent(options)
  try {
    return await agent.release()
  } finally {
    await close()
  }
}

/** @param onRequest a request for a pod that is out: the operator should hear at once */
async function openAgent(options: AgentOptions, onRequest = (): void => {}) {
  const { stateFolder, node, idleAfterMs, onNote } = options
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 })
  const unlock = lockFolder(stateFolder)
  const clock = createSystemClock(bootTime)
  const end = (): void => {
    clock.stop()
    unlock()
  }
  const program = await guardProgram().catch((error: unknown) => {
    onNote(`no request wakes a pod: ${errorText(error)}`)
    return null
  })
  try {
    const { accelerator, hostSwapMib } = acceleratorOf(options, clock, onNote)
    const agent = await PodAgent.open({
      ...{ node, accelerator, stateFolder, idleAfterMs, onNote },
      cgroups: new PodCgroups(options.cgroups),
      hostSwapMib: options.hostSwapMib ?? hostSwapMib,
      ...{ whyNot, onRequest },
      watch: program === null ? null : (told) => new SocketWatch({ program, onRequest: told, onNote }),
      now: bootTime,
      wait: (ms) => pause(ms),
    })
    const close = (): Promise<void> => agent.close().finally(end)
    return { agent, close }
  } catch (error) {
    end()
    throw error
  }
}

/** Specification 2.6: it holds while the operator is away too. */
function whyNot(environment: Readonly<Record<string, string>>): string | null {
  const { isSwappable, fault } = swapSetting(environment)
  return isSwappable ? null : (fault ?? 'its environment requests that it stays in VRAM')
}

async function repeat(
  signal: AbortSignal,
  everyMs: DurationMs,
  act: () => Promise<void>,
  onFault: (error: unknown) => void,
): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    await act().then(
      () => (failures = 0),
      (error: unknown) => {
        failures += 1
        if (!signal.aborted) onFault(error)
      },
    )
    const retryMs = failures > FIRST_RETRIES ? RETRY_MS : FIRST_RETRY_MS
    await pause(failures === 0 ? everyMs : retryMs, undefined, { signal }).catch(() => {})
  }
}

function onChange(write: (line: string) => void): (line: string) => void {
  let last = ''
  return (line) => {
    if (line !== last) write(line)
    last = line
  }
}

function metricsOf(agent: PodAgent, isHeard: () => boolean): Metrics {
  const metrics = new Metrics()
  metrics.add(
    gauge('headroom_agent_heard', 'Whether the operator has answered in the last few seconds.', () =>
      isHeard() ? 1 : 0,
    ),
    gauge('headroom_agent_pods_out', 'Pods of this node whose VRAM is in host memory.', () => agent.outCount),
  )
  return metrics
}
