/** Checks the broker at CONTROLLER_NATS_URL by its first line (INFO), which needs no login. */
import { connect } from 'node:net'
import { SettingsError } from '../../services/settings/settings.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { fail, ok, reasonOf, warn, type Check } from './check.ts'

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
        `${where} is nats-server ${info.version} and requires TLS`,
        `use tls:// in ${VARIABLE}, or set CONTROLLER_NATS_TLS_CA`,
      )
    }
    if (!wantsTls && url.protocol === 'tls:' && info.tls_available !== true) {
      return fail(
        'broker',
        `${where} is nats-server ${info.version} and has no TLS`,
        'configure it there, or use nats://',
      )
    }
    return ok(
      'broker',
      `${where} is nats-server ` +
        `${info.version}${info.auth_required === true ? ', with login' : ', open to everyone'}`,
    )
  } catch (error) {
    return fail('broker', `${where}: ${reasonOf(error)}`, `start nats-server there, or correct ${VARIABLE}`)
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
      if (info === undefined) reject(error ?? new Error('it closed the connection'))
      else resolve(info)
    }
    socket.setTimeout(ANSWER_TIMEOUT_MS, () =>
      end(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)),
    )
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(new Error(error.code === 'ECONNREFUSED' ? 'connection refused' : error.message)),
    )
    socket.on('close', () => end(null))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!text.includes('\n') && text.length <= MAX_INFO_BYTES) return
      const info = readInfo(text.split('\n', 1)[0] ?? '')
      end(new Error('the server there is not a NATS broker'), info)
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
