/** The GPUNode of one node. Changes of its status are made one after the other, each against its version. */
import { isDeepStrictEqual } from 'node:util'
import { GPU_NODE, type GPUNodeStatus } from '../contract/policies.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  NOT_FOUND,
  ownResource,
} from '../ports/kube-api.ts'

/** Returns the new status, or why the status stays as it is. */
export type StatusChange = (status: GPUNodeStatus) => GPUNodeStatus | string

const KIND = ownResource(GPU_NODE)
const TRIES = 10

export class NodeBook {
  readonly nodeName: string
  readonly #api: KubeApi
  #object: KubeObject | null
  #last: Promise<unknown> = Promise.resolve()

  /** @param object as it was last seen; null: it does not exist */
  constructor(api: KubeApi, nodeName: string, object: KubeObject | null) {
    this.#api = api
    this.nodeName = nodeName
    this.#object = object
  }

  /** Empty: it is not known. */
  get uid(): string {
    return this.#object?.metadata.uid ?? ''
  }

  get generation(): number {
    return this.#object?.metadata.generation ?? 1
  }

  /** The status as it was last written or read. */
  get status(): GPUNodeStatus {
    return statusOf(this.#object)
  }

  /** Resolves with null once the change is stored, or with the reason of the change why it is not. */
  change(change: StatusChange): Promise<string | null> {
    const done = this.#last.then(() => this.#change(change))
    this.#last = done.catch(() => {})
    return done
  }

  /** Reads the stored status again. */
  reread(): Promise<GPUNodeStatus> {
    const done = this.#last.then(async () => statusOf((this.#object = await this.#read())))
    this.#last = done.catch(() => {})
    return done
  }

  async #change(change: StatusChange): Promise<string | null> {
    for (let tries = 1; ; tries += 1) {
      const object = (this.#object ??= await this.#read())
      const before = statusOf(object)
      const status = change(before)
      if (typeof status === 'string') return status
      if (isDeepStrictEqual(status, before)) return null
      try {
        this.#object = await this.#api.replace(KIND, { ...object, status }, { subresource: 'status' })
        return null
      } catch (error) {
        // The known object is out of date. After another failure it may be.
        this.#object = null
        const isRetried = error instanceof KubeError && [CONFLICT, NOT_FOUND].includes(error.code)
        if (!isRetried || tries === TRIES) throw error
      }
    }
  }

  async #read(): Promise<KubeObject> {
    const metadata = { name: this.nodeName }
    try {
      return await this.#api.get(KIND, metadata)
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== NOT_FOUND) throw error
      return this.#api.create(KIND, { metadata })
    }
  }
}

function statusOf(object: KubeObject | null): GPUNodeStatus {
  return (object?.['status'] ?? {}) as GPUNodeStatus
}
