/**
 * Networks of task containers, in which no task reaches another (docs/decisions/0130). Docker: one network
 * per server, whose containers do not reach each other. Podman has no such setting: one per container; its
 * rootless containers are apart without any.
 */
import { LIBPOD, type EngineKind } from './engine-api.ts'
import { askEngine, EngineFault, type EngineRequest } from './engine-socket.ts'
import { fieldsOf } from './pull-progress.ts'

const REQUEST_MS = 60_000
const MISSING = 404
const CONFLICT = 409
const NO_CONTACT = 'com.docker.network.bridge.enable_icc'

export interface NetworkEngine {
  readonly kind: EngineKind
  readonly isRootless: boolean
  readonly socketPath: string
}

export class TaskNetworks {
  readonly #engine: NetworkEngine
  readonly #label: readonly [name: string, value: string]
  readonly #shared: string
  #making: Promise<void> = Promise.resolve()

  /** @param label by which a server finds its networks */
  constructor(engine: NetworkEngine, label: readonly [string, string]) {
    this.#engine = engine
    this.#label = label
    this.#shared = `headroom-tasks-${label[1]}`
  }

  /**
   * Resolves with the network of a new container; null: the engine's own default.
   * @throws EngineFault if the engine has no network that keeps tasks apart
   */
  async make(container: string): Promise<string | null> {
    if (this.#engine.kind === 'podman') {
      if (this.#engine.isRootless) return null
      await this.#create('podman', container)
      return container
    }
    // One after the other: Docker makes two networks of one name.
    this.#making = this.#making.catch(() => {}).then(() => this.#makeShared())
    await this.#making
    return this.#shared
  }

  /** Resolves also if it does not exist. */
  async remove(container: string): Promise<void> {
    if (!this.#isPerContainer) return
    const path = `${LIBPOD}/networks/${encodeURIComponent(container)}`
    await this.#ask({ method: 'DELETE', path }).catch(unless(MISSING))
  }

  /** Containers of this server that have a network, whether they exist or not. */
  async containers(): Promise<readonly string[]> {
    if (!this.#isPerContainer) return []
    const query = new URLSearchParams({ filters: JSON.stringify({ label: [this.#label.join('=')] }) })
    const answer = await this.#ask({ method: 'GET', path: `${LIBPOD}/networks/json?${query}` })
    return (Array.isArray(answer) ? (answer as readonly unknown[]) : []).flatMap((each) => {
      const { name } = fieldsOf(each)
      return typeof name === 'string' ? [name] : []
    })
  }

  get #isPerContainer(): boolean {
    return this.#engine.kind === 'podman' && !this.#engine.isRootless
  }

  /** Each time: an operator may have pruned it. */
  async #makeShared(): Promise<void> {
    const path = `/networks/${this.#shared}`
    const found = await this.#ask({ method: 'GET', path }).catch(unless(MISSING))
    if (found === null) return this.#create('docker', this.#shared)
    if (fieldsOf(fieldsOf(found)['Options'])[NO_CONTACT] !== 'false')
      throw new EngineFault(`network ${this.#shared} does not isolate its containers: remove it`, CONFLICT)
  }

  async #create(kind: EngineKind, name: string): Promise<void> {
    const labels = Object.fromEntries([this.#label])
    const body =
      kind === 'podman'
        ? { name, driver: 'bridge', dns_enabled: false, options: { isolate: 'true' }, labels }
        : {
            Name: name,
            CheckDuplicate: true,
            Driver: 'bridge',
            Options: { [NO_CONTACT]: 'false' },
            Labels: labels,
          }
    const path = kind === 'podman' ? `${LIBPOD}/networks/create` : '/networks/create'
    await this.#ask({ method: 'POST', path, body }).catch(unless(CONFLICT))
  }

  async #ask(asked: Omit<EngineRequest, 'idleMs'>): Promise<unknown> {
    const text = await askEngine(this.#engine.socketPath, { ...asked, idleMs: REQUEST_MS })
    try {
      return text === '' ? {} : (JSON.parse(text) as unknown)
    } catch {
      throw new EngineFault('the engine returned a response that is not JSON')
    }
  }
}

function unless(status: number): (error: unknown) => null {
  return (error) => {
    if (error instanceof EngineFault && error.status === status) return null
    throw error
  }
}
