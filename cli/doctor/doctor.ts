/** `headroom doctor`: one line for each check, with what to do when it fails. */
import { connect } from 'node:net'
import { ApiError } from '../../clients/typescript/client.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { packageVersion } from '../../services/package-info.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { SettingsError } from '../../services/settings/settings.ts'
import { openClient, type CommandOptions, type ServerOption } from '../command/session.ts'
import { printList } from '../output/table.ts'
import { CHECK_COLUMNS, fail, ok, warn, type Check } from './check.ts'
import { keyChecks, nodeIdentityCheck, taskUserChecks } from './confinement.ts'
import {
  compilerCheck,
  containerCheck,
  dataDirCheck,
  nodeVersionCheck,
  nvidiaCheck,
  swapArenaCheck,
} from './host.ts'
import { storeChecks } from './store.ts'
import { errorText } from '../../protocol/error-text.ts'

export async function doctor({ output, ...server }: CommandOptions): Promise<number> {
  const found = await Promise.all([
    nodeVersionCheck(process.versions.node),
    controllerChecks(server),
    brokerChecks(process.env),
    storeChecks(process.env),
    compilerCheck(),
    nvidiaCheck(),
    swapArenaCheck(process.env),
    containerCheck(process.env),
    dataDirCheck(process.env),
  ])
  const checks = [
    ...found.flat(),
    ...keyChecks(process.env),
    ...(process.platform === 'linux' ? taskUserChecks() : []),
  ]
  await printList(checks, CHECK_COLUMNS, output)
  return checks.some(({ verdict }) => verdict === 'fail') ? EXIT_FAILED : EXIT_OK
}

/** A larger difference between clocks makes ages and times in answers misleading. */
const MAX_SKEW_MS = 5_000
/** One page; further nodes are not checked. */
const MAX_NODES = 1000

export async function controllerChecks(server: ServerOption): Promise<readonly Check[]> {
  const client = openClient(server)
  try {
    const version = await client.version()
    const readiness = await client.readiness()
    const askedAt = Date.now()
    const summary = await client.summary()
    return [
      ok('controller', `${client.url} responds (${version.fleet} fleet)`),
      versionCheck(version.version),
      ...readiness.checks.map((check) =>
        check.ok
          ? ok(`ready: ${check.name}`, check.detail)
          : fail(`ready: ${check.name}`, check.detail, 'see the log of the controller'),
      ),
      ...(readiness.checks.length === 0 ? [ok('ready', readiness.status)] : []),
      clockCheck(Date.parse(summary.at), askedAt, Date.now()),
      ...(version.fleet === 'simulated'
        ? []
        : nodeIdentityCheck((await client.nodes.list({ limit: MAX_NODES })).items)),
    ]
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      return [
        fail(
          'controller',
          `${client.url} responded: ${error.detail}`,
          'provide a token with role viewer in HEADROOM_TOKEN or --token-file',
        ),
      ]
    }
    return [
      fail(
        'controller',
        errorText(error),
        'start a controller with `headroom serve`, or set HEADROOM_URL or --server',
      ),
    ]
  }
}

function versionCheck(theirs: string): Check {
  const ours = packageVersion()
  if (theirs === ours) return ok('version', ours)
  return warn(
    'version',
    `the controller has version ${theirs}, this command has version ${ours}`,
    'use the same version for both',
  )
}

/** The controller's time must be between the times of request and answer, within the tolerance. */
export function clockCheck(theirs: number, askedAt: number, answeredAt: number): Check {
  const skewMs = theirs < askedAt ? askedAt - theirs : Math.max(0, theirs - answeredAt)
  if (skewMs <= MAX_SKEW_MS) return ok('clock', 'agrees with the controller')
  const detail = `differs from the controller by ${Math.round(skewMs / 1000)} s`
  return warn(
    'clock',
    detail,
    'synchronize both clocks with NTP (a simulated fleet lags for a few seconds after it starts)',
  )
}

const ANSWER_TIMEOUT_MS = 3_000
/** INFO has some hundred bytes. */
const MAX_INFO_BYTES = 64 * 1024
const DEFAULT_PORT = 4222
const VARIABLE = ENVIRONMENT.natsUrls.name

export async function brokerChecks(env: NodeJS.ProcessEnv): Promise<readonly Check[]> {
  const text = env[VARIABLE] ?? ''
  if (text === '') return [ok('broker', `${VARIABLE} is not set: no broker is used`)]
  const urls = ENVIRONMENT.natsUrls.read(text)
  if (urls === undefined || urls === null) {
    return [
      fail('broker', new SettingsError(VARIABLE, text, ENVIRONMENT.natsUrls.range).message, 'correct it'),
    ]
  }
  return Promise.all(urls.map((url) => brokerCheck(new URL(url))))
}

async function brokerCheck(url: URL): Promise<Check> {
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  const where = `${url.hostname}:${port}`
  try {
    const info = await infoOf(url.hostname.replace(/^\[(.*)\]$/, '$1'), port)
    const wantsTls = info.tls_required === true
    if (wantsTls && url.protocol === 'nats:') {
      return warn(
        'broker',
        `${where} runs nats-server ${info.version}, which requires TLS`,
        `use tls:// in ${VARIABLE}, or set CONTROLLER_NATS_TLS_CA`,
      )
    }
    if (!wantsTls && url.protocol === 'tls:' && info.tls_available !== true) {
      return fail(
        'broker',
        `${where} runs nats-server ${info.version} without TLS`,
        'configure TLS on the broker, or use nats://',
      )
    }
    return ok(
      'broker',
      `${where} runs nats-server ` +
        `${info.version}, ${info.auth_required === true ? 'with' : 'without'} authentication`,
    )
  } catch (error) {
    return fail(
      'broker',
      `${where}: ${errorText(error)}`,
      `start nats-server at this address, or ` + `correct ${VARIABLE}`,
    )
  }
}

interface BrokerInfo {
  readonly version: string
  readonly tls_required?: unknown
  readonly tls_available?: unknown
  readonly auth_required?: unknown
}

function infoOf(host: string, port: number): Promise<BrokerInfo> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    let text = ''
    const end = (error: Error | null, info?: BrokerInfo): void => {
      socket.destroy()
      if (info === undefined) reject(error ?? new Error('the server closed the connection'))
      else resolve(info)
    }
    socket.setTimeout(ANSWER_TIMEOUT_MS, () =>
      end(new Error(`no response within ${ANSWER_TIMEOUT_MS / 1000} s`)),
    )
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(new Error(error.code === 'ECONNREFUSED' ? 'connection refused' : error.message)),
    )
    socket.on('close', () => end(null))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!text.includes('\n') && text.length <= MAX_INFO_BYTES) return
      const info = readInfo(text.split('\n', 1)[0] ?? '')
      end(new Error('the server is not a NATS broker'), info)
    })
  })
}

function readInfo(line: string): BrokerInfo | undefined {
  if (!line.startsWith('INFO ')) return undefined
  try {
    const info = JSON.parse(line.slice('INFO '.length)) as Partial<BrokerInfo>
    return { ...info, version: typeof info.version === 'string' ? info.version : 'of an unknown version' }
  } catch {
    return undefined
  }
}
