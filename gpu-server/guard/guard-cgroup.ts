import { accessSync, constants, mkdirSync, readFileSync, rmdirSync } from 'node:fs'

/**
 * Returns the cgroup v2 folder under which tasks get their cgroups, a child of this process's cgroup, so that
 * its limits apply to them too. Null where the host has no cgroup v2, the folder is not writable (an ordinary
 * user, most containers), or the kernel is older than 5.14.
 */
export function findCgroupRoot(): string | null {
  try {
    const own = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find((fields) => fields[2] === 'cgroup2')?.[1]
    if (own === undefined || mount === undefined || own.includes('..')) return null
    const root = `${mount}${own === '/' ? '' : own}/headroom`
    mkdirSync(root, { recursive: true })
    for (const file of ['cgroup.kill', 'cgroup.freeze', 'cgroup.procs'])
      accessSync(`${root}/${file}`, constants.W_OK)
    return root
  } catch {
    return null
  }
}

/**
 * Returns null where it cannot be made: the task then has none.
 * @param name unique on this host
 */
export function makeCgroup(root: string | null, name: string): string | null {
  if (root === null) return null
  const folder = `${root}/${name}`
  try {
    mkdirSync(root, { recursive: true })
    mkdirSync(folder)
    return folder
  } catch {
    return null
  }
}

/** Removes the cgroup of a task without processes. A cgroup that is still busy is left behind, empty. */
export function removeCgroup(folder: string | null): void {
  if (folder === null) return
  try {
    rmdirSync(folder)
    rmdirSync(folder.slice(0, folder.lastIndexOf('/')))
  } catch {
    // Its parent has other cgroups, or another process removed it first.
  }
}
