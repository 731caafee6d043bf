/** Data folders that a GPU server offers: `--mount datasets=/srv/datasets`, `--mount scratch=/srv/x:rw`. */
import { realpathSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { DataMount } from '../../gpu-server/files/data-mounts.ts'
import { MOUNT_NAME } from '../../protocol/fields.ts'
import { MAX_MOUNT_NAME_LENGTH, MAX_OFFERED_MOUNTS } from '../../protocol/limits.ts'
import { UsageError } from '../exit-codes.ts'

const WRITABLE = ':rw'

/** @throws UsageError that names the option, for a name, a path or a folder that is not valid */
export function mountsOf(texts: readonly string[]): readonly DataMount[] {
  const mounts = texts.map(mountOf)
  const names = mounts.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) throw new UsageError(`--mount ${twice}: the name is specified twice`)
  if (mounts.length > MAX_OFFERED_MOUNTS)
    throw new UsageError(`--mount: a server offers at most ${MAX_OFFERED_MOUNTS} folders`)
  return mounts
}

function mountOf(text: string): DataMount {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(0, at))
  if (name === '' || MOUNT_NAME.refused.test(name) || name.length > MAX_MOUNT_NAME_LENGTH)
    throw new UsageError(
      `--mount ${text}: must be NAME=/folder or NAME=/folder:rw. NAME: ${MOUNT_NAME.description}, ` +
        `of at most ${MAX_MOUNT_NAME_LENGTH} characters`,
    )
  const given = text.slice(at + 1)
  const isReadOnly = !given.endsWith(WRITABLE)
  const path = isReadOnly ? given : given.slice(0, -WRITABLE.length)
  return { name, source: folderAt(text, path), isReadOnly }
}

/** The folder itself may be a link of the administrator. */
function folderAt(text: string, path: string): string {
  if (!isAbsolute(path)) throw new UsageError(`--mount ${text}: the folder must be an absolute path`)
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  if (!isFolder) throw new UsageError(`--mount ${text}: ${path} is not a folder`)
  return realpathSync(path)
}
