import type { StartRefused } from '../../protocol/message-fields.ts'
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import type { DataMount } from '../files/data-mounts.ts'

/** The container of a task. */
export interface ContainerSpec {
  /** A reference to an image, checked by its grammar (protocol/fields.ts). */
  readonly image: string
  /** Ids of the placement's GPUs, and of no others; empty for declared GPUs. */
  readonly devices: readonly string[]
  /** Epoch of the controller that ordered the start; a label. */
  readonly epoch: number
  /** The image was prepared for this attempt: the pull policy has been followed. */
  readonly isPrepared?: boolean
  readonly mounts: readonly DataMount[]
}

/** Definition of a container. Every path is the server's own. */
export interface ContainerStart {
  /** Unique, and stored with the attempt before the container is made. */
  readonly name: string
  readonly taskId: string
  readonly attempt: number
  readonly epoch: number
  readonly imageId: string
  /** The guard program, which is its init. */
  readonly program: string
  /** The socket on which the guard waits for the init. */
  readonly socket: string
  /** The attempt's private folder, the only one that it may write besides its own file system. */
  readonly workFolder: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly groups: readonly number[]
  readonly devices: readonly string[]
  /** Data folders of the host. */
  readonly mounts: readonly DataMount[]
  /** Absent: none but the default of processes. */
  readonly limits?: ResourceLimits
}

export interface Refused {
  readonly error: string
  readonly refused: StartRefused
}

export interface PreparedImage {
  readonly error: null
  readonly imageId: string
  /** The image's own working directory; `/` if it names none. */
  readonly workingDirectory: string
  /** Digest of the image in its registry; null: this host does not know one. */
  readonly digest: string | null
}

export interface PrepareOptions {
  /** Ends the pull. */
  readonly signal: AbortSignal
  /** An image that is here is not pulled again, whatever the policy. */
  readonly isPrepared?: boolean
  /** Bytes of the layers that are known so far; null: none is. */
  readonly onProgress?: (bytesDone: number, bytesTotal: number | null) => void
}

/** Mount point of the attempt's private folder, and HOME of a task in a container. */
export const CONTAINER_WORK = '/headroom/work'
/** Mount points that the guard program expects (container.c). */
export const CONTAINER_PROGRAM = '/headroom/guard'
export const CONTAINER_SOCKET = '/headroom/init'

/**
 * The container engine of this host. It starts and removes containers; the guard of the attempt does the
 * rest. A server that ends at any point leaves either a task with a guard or a container without a program.
 */
export interface Containers {
  /** The engine can limit memory, processors and processes of a container. */
  readonly canLimit: boolean
  /** Pulls the image if the policy says so. */
  prepare(image: string, options: PrepareOptions): Promise<PreparedImage | Refused>
  /** The images that need no pull; an engine that does not answer has none. */
  imagesHere(images: readonly string[]): Promise<readonly string[]>
  start(start: ContainerStart): Promise<{ readonly error: null } | Refused>
  /** Resolves also if it does not exist. What cannot be removed now is removed later. */
  remove(name: string): Promise<void>
  /** Removes all containers of this server that are not needed, in the background. */
  removeOthers(isNeeded: (name: string) => boolean): void
  close(): void
}
