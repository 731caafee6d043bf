/**
 * An agent without processes, over the real connection: all its pods have been idle for an hour, and it
 * carries out every order at once.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AgentClient } from '../../../operator/adapters/agent-client.ts'
import type { AgentAnswer, PodReport } from '../../../protocol/agent-messages.ts'
import { errorText } from '../../../protocol/error-text.ts'
import { agentAccount } from './components.ts'
import type { PlacingWorld } from './placing-world.ts'

const IDLE_MS = 3_600_000
const RETRY_MS = 200

export interface IdleAgentOptions {
  readonly world: Pick<PlacingWorld, 'plane' | 'agentsPort'>
  readonly node: string
  /** Of each GPU. */
  readonly vramMib: readonly number[]
}

export class IdleAgent {
  /** Order and residency of each pod of the last answer. */
  readonly pods = new Map<string, PodReport>()
  readonly #options: IdleAgentOptions
  readonly #loop: Promise<void>
  #isStopped = false
  #said = ''

  constructor(options: IdleAgentOptions) {
    this.#options = options
    this.#loop = this.#run()
  }

  /** Why the operator last refused a report; empty: it never did. */
  get said(): string {
    return this.#said
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
  }

  async #run(): Promise<void> {
    const { world, node, vramMib } = this.#options
    const certificates = await agentAccount(world.plane, node)
    const tokenFile = join(certificates, 'token')
    const gpus = vramMib.map((vram_mib, index) => {
      return { uuid: `${node}-GPU-${index}`, model: 'X', vram_mib, foreign_mib: 0 }
    })
    const head = { node, host_swap_mib: 10_000_000, wait_ms: 100, gpus }
    while (!this.#isStopped) {
      const port = await world.agentsPort()
      const client = new AgentClient({ certificates, tokenFile, host: 'localhost', port })
      try {
        while (!this.#isStopped) this.#obey(await client.report({ ...head, pods: [...this.pods.values()] }))
      } catch (error) {
        this.#said = errorText(error)
        await delay(RETRY_MS)
      }
      client.close()
    }
  }

  #obey({ pods }: AgentAnswer): void {
    const known = new Set(pods.map(({ pod }) => pod))
    for (const pod of this.pods.keys()) if (!known.has(pod)) this.pods.delete(pod)
    for (const { pod, order, wanted } of pods) {
      const before = this.pods.get(pod)
      const residency = order === 0 ? (before?.residency ?? 'in') : wanted
      const done = order === 0 ? null : ('done' as const)
      this.pods.set(pod, {
        ...{ pod, residency, order, outcome: done, why_not: null, wants_gpu: false, idle_ms: IDLE_MS },
      })
    }
  }
}
