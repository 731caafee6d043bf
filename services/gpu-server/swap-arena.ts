/** The swap arena of a GPU server: `--swap-arena`. */
import { createHash } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { ArenaPlace } from '../../gpu-server/devices/nvidia/swap-arena.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { Mib } from '../../protocol/units.ts'
import { UsageError } from '../exit-codes.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { valueOf } from './value-of.ts'

/** The option takes precedence over the variable. */
export interface SwapArenaOptions {
  /** 0: none. */
  readonly swapArena?: Mib
}

const BYTES_PER_MIB = 1024 * 1024
const PIECE_MIB: Mib = 64
const TMPFS_MAGIC = 0x0102_1994
const FOLDER = '/dev/shm'

/**
 * Also without an arena the place has a meaning: a server restores what an earlier one stored there.
 * @throws UsageError
 */
export function swapArenaOf(
  { swapArena }: SwapArenaOptions,
  env: Readonly<Record<string, string | undefined>>,
  stateFolder: string,
  folder = FOLDER,
): ArenaPlace {
  const mib = swapArena ?? valueOf(env, ENVIRONMENT.swapArena) ?? 0
  if (mib > 0) checkSize(mib, folder)
  const name = createHash('sha256').update(stateFolder).digest('hex').slice(0, 16)
  return {
    file: join(folder, `headroom-swap-arena-${name}`),
    records: join(stateFolder, 'swap-arena'),
    bytes: mib * BYTES_PER_MIB,
    pieceBytes: PIECE_MIB * BYTES_PER_MIB,
  }
}

function checkSize(mib: Mib, folder: string): void {
  if (mib < PIECE_MIB)
    throw new UsageError(`--swap-arena ${mib} MiB: it must be at least ${PIECE_MIB} MiB, or 0`)
  const hostMib = Math.floor(totalmem() / BYTES_PER_MIB)
  if (mib > hostMib) throw new UsageError(`--swap-arena ${mib} MiB: this host has ${hostMib} MiB of memory`)
  const place = statfsOf(folder)
  if (place.type !== TMPFS_MAGIC)
    throw new UsageError(`--swap-arena: ${folder} is not a tmpfs. Mount one there.`)
  const placeMib = Math.floor((Number(place.bsize) * Number(place.blocks)) / BYTES_PER_MIB)
  if (mib > placeMib)
    throw new UsageError(
      `--swap-arena ${mib} MiB: ${folder} is limited to ${placeMib} MiB. Run: mount -o ` +
        `remount,size=${mib}m ${folder}`,
    )
}

function statfsOf(folder: string): ReturnType<typeof statfsSync> {
  try {
    return statfsSync(folder)
  } catch (error) {
    throw new UsageError(`--swap-arena: ${folder} cannot be read (${errorText(error)})`)
  }
}
