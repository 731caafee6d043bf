/**
 * Addresses for pods and Services on this machine: each pod has a network namespace of its own behind a
 * bridge, and the whole range of the Services belongs to the bridge, so that a process of this machine can
 * listen on each of their addresses. Everything is removed with the bridge and the namespaces. Needs root.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { networkInterfaces } from 'node:os'
import { afterEachFile } from '../endings.ts'

const FIRST_RANGE = 64
const RANGES = 180
const MAX_PODS = 250
/** The last number of its address; those of pods follow. */
const GATEWAY = 1

const open = new Set<PodNetwork>()
afterEachFile(() => {
  for (const network of open) network.close()
})

export interface PodAddress {
  /** Name of the network namespace. */
  readonly namespace: string
  readonly address: string
}

/** Null: this machine lets a test make networks and mounts. */
export function whyNoPodNetwork(): string | null {
  const bridge = `hr-${process.pid}`
  const tried = `ip link add ${bridge} type bridge && ip link del ${bridge}`
  const script = `unshare --mount --net true && setpriv --version && ${tried}`
  const { status, stderr, error } = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
  if (status === 0) return null
  const why = `pods with a network and files of their own need root, unshare, setpriv and ip: ${
    error?.message ?? stderr.trim()
  }`
  process.stderr.write(`skipped: ${why}\n`)
  return why
}

export class PodNetwork {
  readonly #bridge: string
  readonly #range: string
  readonly #namespaces = new Map<string, number>()

  private constructor(range: number) {
    this.#range = `10.${range}`
    this.#bridge = `hr${range}`
    // Else it has the lowest address of its pods, which changes with them.
    ip('link', 'add', this.#bridge, 'address', hardwareAddress(GATEWAY), 'type', 'bridge')
    open.add(this)
    ip('addr', 'add', `${this.gateway}/24`, 'dev', this.#bridge)
    ip('link', 'set', this.#bridge, 'up')
    ip('route', 'add', 'local', this.serviceRange, 'dev', this.#bridge)
  }

  /** In a range that this machine does not use. */
  static start(): PodNetwork {
    const used = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
    for (let tries = 0; ; tries += 1) {
      const range = FIRST_RANGE + Math.floor(Math.random() * RANGES)
      if (used.some((address) => address.startsWith(`10.${range}.`))) continue
      try {
        return new PodNetwork(range)
      } catch (error) {
        if (tries > RANGES) throw error
      }
    }
  }

  get serviceRange(): string {
    return `${this.#range}.0.0/24`
  }

  /** Of the Service `kubernetes`. */
  get apiAddress(): string {
    return `${this.#range}.0.1`
  }

  /** The address of this machine for its pods. */
  get gateway(): string {
    return `${this.#range}.1.${GATEWAY}`
  }

  addPod(): PodAddress {
    const taken = new Set(this.#namespaces.values())
    const number = Array.from({ length: MAX_PODS }, (_, index) => GATEWAY + 1 + index).find(
      (each) => !taken.has(each),
    )
    if (number === undefined) throw new Error(`more than ${MAX_PODS} pods`)
    const [namespace, address] = [`${this.#bridge}-${number}`, `${this.#range}.1.${number}`]
    ip('netns', 'add', namespace)
    this.#namespaces.set(namespace, number)
    const peer = ['peer', 'name', 'eth0', 'address', hardwareAddress(number), 'netns', namespace]
    ip('link', 'add', namespace, 'type', 'veth', ...peer)
    ip('link', 'set', namespace, 'master', this.#bridge, 'up')
    const inside = (...args: readonly string[]): void => ip('-n', namespace, ...args)
    inside('link', 'set', 'lo', 'up')
    inside('addr', 'add', `${address}/24`, 'dev', 'eth0')
    inside('link', 'set', 'eth0', 'up')
    inside('route', 'add', 'default', 'via', this.gateway)
    return { namespace, address }
  }

  removePod(namespace: string): void {
    if (!this.#namespaces.delete(namespace)) return
    // The other end of its link goes with it, a moment later.
    spawnSync('ip', ['link', 'del', namespace])
    ip('netns', 'del', namespace)
  }

  close(): void {
    open.delete(this)
    for (const namespace of [...this.#namespaces.keys()]) this.removePod(namespace)
    ip('link', 'del', this.#bridge)
  }
}

/** The next pod with the same address has it too: others may still remember it. */
function hardwareAddress(number: number): string {
  return `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}
