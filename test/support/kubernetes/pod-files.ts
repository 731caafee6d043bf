/**
 * The volumes of a pod as a kubelet makes them: Secrets, ConfigMaps, tokens of its ServiceAccount, empty
 * folders and folders of its node. Files of Secrets and ConfigMaps follow their objects.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { KubeObject } from '../../../operator/ports/kube-api.ts'
import type { ControlPlane } from './control-plane.ts'
import type { StackPodObject, Volume, VolumeSource } from './pod-object.ts'

const DEFAULT_MODE = 0o644
const GROUP_READS = 0o440

export interface PodFilesOptions {
  readonly plane: ControlPlane
  /** Of this pod alone. */
  readonly folder: string
  readonly pod: StackPodObject
  /** A Secret or ConfigMap of the namespace of the pod. */
  readonly found: (kind: 'Secret' | 'ConfigMap', name: string) => KubeObject | undefined
  /** Where a path of the node is on this machine. */
  readonly hostPath: (path: string) => string
}

type Files = ReadonlyMap<string, Buffer>

export class PodFiles {
  readonly #options: PodFilesOptions
  readonly #tokens = new Map<string, Buffer>()

  constructor(options: PodFilesOptions) {
    this.#options = options
  }

  /** Returns the folder of each volume; null: an object that the pod needs is missing. */
  async renewed(): Promise<ReadonlyMap<string, string> | null> {
    const folders = new Map<string, string>()
    for (const volume of this.#options.pod.spec.volumes ?? []) {
      const folder = await this.#folderOf(volume)
      if (folder === null) return null
      folders.set(volume.name, folder)
    }
    return folders
  }

  async #folderOf(volume: Volume): Promise<string | null> {
    const { hostPath, folder: own } = this.#options
    if (volume.hostPath !== undefined) {
      const path = hostPath(volume.hostPath.path)
      if (volume.hostPath.type === 'DirectoryOrCreate') mkdirSync(path, { recursive: true })
      return existsSync(path) ? path : null
    }
    const folder = join(own, volume.name)
    if (volume.emptyDir !== undefined) {
      mkdirSync(folder, { recursive: true })
      chmodSync(folder, 0o777)
      return folder
    }
    const sources = volume.projected?.sources ?? [volume]
    const mode = (volume.projected ?? volume.secret ?? volume.configMap)?.defaultMode ?? DEFAULT_MODE
    const all = new Map<string, Buffer>()
    for (const source of sources) {
      const files = await this.#filesOf(source)
      if (files === null) return null
      for (const [name, bytes] of files) all.set(name, bytes)
    }
    this.#write(folder, all, mode)
    return folder
  }

  async #filesOf(source: VolumeSource): Promise<Files | null> {
    const { secret, configMap, serviceAccountToken, downwardAPI } = source
    if (serviceAccountToken !== undefined)
      return new Map([[serviceAccountToken.path, await this.#token(serviceAccountToken)]])
    if (downwardAPI !== undefined)
      return new Map(downwardAPI.items.map(({ path }) => [path, Buffer.from(this.#namespace)]))
    const kind = secret === undefined ? 'ConfigMap' : 'Secret'
    const asked = secret ?? configMap
    if (asked === undefined) throw new Error(`volume of an unknown kind: ${JSON.stringify(source)}`)
    const object = this.#options.found(kind, asked.secretName ?? asked.name ?? '')
    const data = (object?.['data'] ?? {}) as Readonly<Record<string, string>>
    const items = asked.items ?? Object.keys(data).map((key) => ({ key, path: key }))
    const isWhole = object !== undefined && items.every(({ key }) => data[key] !== undefined)
    if (!isWhole) return asked.optional === true ? new Map() : null
    const encoding = kind === 'Secret' ? 'base64' : 'utf8'
    return new Map(items.map(({ key, path }) => [path, Buffer.from(data[key] ?? '', encoding)]))
  }

  get #namespace(): string {
    return this.#options.pod.metadata.namespace ?? ''
  }

  /** Bound to the pod: the API server knows by it on which node the pod runs. */
  async #token(asked: NonNullable<VolumeSource['serviceAccountToken']>): Promise<Buffer> {
    const key = JSON.stringify(asked)
    const known = this.#tokens.get(key)
    if (known !== undefined) return known
    const { metadata, spec } = this.#options.pod
    const { audience, expirationSeconds = 3600 } = asked
    const { name, uid } = metadata
    const accounts = `/api/v1/namespaces/${this.#namespace}/serviceaccounts`
    const path = `${accounts}/${spec.serviceAccountName ?? 'default'}/token`
    const made = await this.#options.plane.raw('POST', path, {
      ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
      spec: {
        ...{ expirationSeconds, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
        ...(audience === undefined ? {} : { audiences: [audience] }),
      },
    })
    const { status } = JSON.parse(made) as { readonly status: { readonly token: string } }
    const token = Buffer.from(status.token)
    this.#tokens.set(key, token)
    return token
  }

  /** All files change at once, as the link to their folder. */
  #write(folder: string, files: Files, mode: number): void {
    const digest = createHash('sha256')
    for (const [name, bytes] of files) digest.update(name).update(bytes)
    const version = `..${digest.digest('hex').slice(0, 16)}`
    const link = join(folder, '..data')
    if (existsSync(link) && readlinkSync(link) === version) return
    const group = this.#options.pod.spec.securityContext?.fsGroup
    for (const [name, bytes] of files) {
      const path = join(folder, version, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, bytes)
      if (group !== undefined) chownSync(path, 0, group)
      chmodSync(path, group === undefined ? mode : mode | GROUP_READS)
      if (!existsSync(join(folder, name))) {
        rmSync(join(folder, name), { force: true })
        symlinkSync(join('..data', name), join(folder, name))
      }
    }
    mkdirSync(join(folder, version), { recursive: true })
    symlinkSync(version, `${link}.new`)
    renameSync(`${link}.new`, link)
  }
}
