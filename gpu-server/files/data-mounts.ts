/** Data folders of the host that tasks read, by the names under which the server offers them. */
export interface DataMount {
  readonly name: string
  /** Path on the host. The server resolves nothing below it. */
  readonly source: string
  readonly isReadOnly: boolean
}

/** Folder of the mounts in a container. */
const CONTAINER_MOUNTS = '/mnt'

export function containerMountPoint({ name }: DataMount): string {
  return `${CONTAINER_MOUNTS}/${name}`
}

/** Returns the folders of these names; a name that the server does not offer was refused before. */
export function mountsNamed(offered: readonly DataMount[], names: readonly string[]): readonly DataMount[] {
  return offered.filter(({ name }) => names.includes(name))
}

/** `HEADROOM_MOUNT_DATASETS=/mnt/datasets`: a program finds a folder in a container and on the host. */
export function mountVariables(
  mounts: readonly DataMount[],
  isContained: boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    mounts.map((mount) => [
      `HEADROOM_MOUNT_${mount.name.toUpperCase().replaceAll('-', '_')}`,
      isContained ? containerMountPoint(mount) : mount.source,
    ]),
  )
}
