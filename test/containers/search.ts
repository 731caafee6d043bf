/** The secrets on the host, and the report of the probe. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { PROJECT } from './compose.ts'
import type { Engine } from './engine.ts'
import type { ComposeConfig } from './override.ts'

const MAX_ARGUMENT_LENGTH = 4_096
/** Published ports, the broker's monitor, and the ports of Docker's own API. */
const PORTS = [2375, 2376, 4222, 8222, 30080, 30422]
/** In a live store a simulated fleet has no key; an operator makes the token of a gateway. */
const EMPTY_VOLUMES = ['gateway-token', 'key-sim']
/** Split, so that the probe does not find itself. */
export const CANARY = ['CANARY', 'of', 'another'].join('-')

interface Place {
  readonly name: string
  /** On the host, and in each container that mounts its volume. */
  readonly paths: readonly string[]
}

export interface Told {
  readonly canary: string
  readonly files: readonly Place[]
  readonly sockets: readonly Place[]
  readonly hosts: readonly string[]
  readonly ports: readonly number[]
}

export interface Report {
  readonly uid: number
  /** Capabilities, groups, no_new_privs. */
  readonly status: string
  /** Names of variables. */
  readonly environment: readonly string[]
  /** Inherited file descriptors. */
  readonly inherited: readonly string[]
  readonly isWorkFolderEmpty: boolean
  readonly triedProcesses: number
  /** Ways that gave it more permissions. */
  readonly rights: readonly string[]
  /** Paths of keys, tokens and canaries that it found without hints. */
  readonly secrets: readonly string[]
  /** Names of hinted files that it could open. */
  readonly files: readonly string[]
  /** Processes of other users, and their readable entries. */
  readonly processes: readonly string[]
  readonly sockets: readonly string[]
  readonly network: readonly string[]
  /** Status of a request without a token. */
  readonly api: readonly string[]
  /** The broker's response to no key, an unknown key, and the keys that were found. */
  readonly broker: Readonly<Record<string, string>>
}

interface Mount {
  readonly Name?: string
  readonly Source: string
  readonly Destination: string
}

/**
 * Every file and socket in the mounts of the containers, and the engine's socket. Throws when a volume of the
 * shipped file is empty: it would not be searched.
 */
export function whatThereIs({ docker, socket }: Engine, { services, volumes = {} }: ComposeConfig): Told {
  const containers = docker('ps', '--all', '--quiet').trim().split('\n')
  const mounts = containers.flatMap(
    (id) => JSON.parse(docker('inspect', '--format', '{{json .Mounts}}', id)) as readonly Mount[],
  )
  const bySource = Map.groupBy(mounts, ({ Source }) => Source)
  bySource.delete('')
  const placesOf = (type: 'f' | 's'): readonly Place[] =>
    [...bySource].flatMap(([source, all]) =>
      pathsIn(source, type).map((path) => {
        const inMount = relative(source, path)
        const name = join(all[0]?.Name?.replace(`${PROJECT}_`, '') ?? source, inMount)
        return { name, paths: [path, ...new Set(all.map(({ Destination }) => join(Destination, inMount)))] }
      }),
    )
  const files = placesOf('f')
  const unsearched = Object.keys(volumes).filter(
    (volume) => !files.some(({ name }) => name.startsWith(`${volume}/`)),
  )
  assert.deepEqual(unsearched, EMPTY_VOLUMES)
  return {
    canary: CANARY,
    files,
    sockets: [
      ...placesOf('s'),
      { name: 'docker.sock', paths: [socket, '/var/run/docker.sock', '/run/docker.sock'] },
    ],
    hosts: Object.keys(services),
    ports: PORTS,
  }
}

function pathsIn(folder: string, type: 'f' | 's'): readonly string[] {
  const found = execFileSync('find', [folder, '-type', type], { encoding: 'utf8' }).trim()
  return found === '' ? [] : found.split('\n')
}

/** Returns a command that runs the probe, in arguments of the length that a task may have. */
export function probeCommand(told: Told): readonly string[] {
  const program = readFileSync(join(import.meta.dirname, 'probe.mjs'), 'utf8')
  const packed = gzipSync(JSON.stringify({ program, told })).toString('base64')
  const loader = `
    const packed = process.argv.slice(1).join('')
    const { program, told } = JSON.parse(require('node:zlib').gunzipSync(Buffer.from(packed, 'base64')))
    globalThis.told = told
    import('data:text/javascript;base64,' + Buffer.from(program).toString('base64'))`
  return ['node', '-e', loader, ...(packed.match(new RegExp(`.{1,${MAX_ARGUMENT_LENGTH}}`, 'g')) ?? [])]
}

export function reportIn(output: string): Report {
  const line = output.split('\n').find((each) => each.startsWith('{'))
  return line === undefined ? assert.fail(`the probe printed: ${output}`) : (JSON.parse(line) as Report)
}
