/** Every environment variable that `headroom serve` reads: one line each, from which settings, .env.example and help are made. */
import { isIP } from 'node:net'
import { CONFIG_RULES, DEFAULT_CONFIG, describeRule } from '../controller/domain/config.ts'

export interface EnvironmentVariable<T> {
  readonly name: string
  /** What is allowed, in words that follow "must be". */
  readonly range: string
  /** As it would be written; null: unset. */
  readonly byDefault: string | null
  readonly meaning: string
  /** Reads a value that is not empty; `undefined` says that it is out of range. */
  read(text: string): T | undefined
}

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const OVERCOMMIT_RULE = CONFIG_RULES.default_vram_overcommit_percent

/** In the order in which people set them. */
export const ENVIRONMENT = {
  httpHost: {
    name: 'CONTROLLER_HTTP_HOST',
    range: 'an IP address or a host name',
    byDefault: '127.0.0.1',
    meaning: 'Address on which the REST interface and the page listen',
    read: (text) => (isHost(text) ? text : undefined),
  },
  httpPort: {
    name: 'CONTROLLER_HTTP_PORT',
    range: 'an integer from 0 to 65535',
    byDefault: '30080',
    meaning: 'Port on which they listen; 0 takes any that is free',
    read: (text) => integerIn(text, 0, 65_535),
  },
  dataDir: {
    name: 'CONTROLLER_DATA_DIR',
    range: 'a path',
    byDefault: './data',
    meaning: 'Folder of the SQLite store; it is made when it is missing',
    read: (text) => (text.includes('\0') ? undefined : text),
  },
  natsUrls: {
    name: 'CONTROLLER_NATS_URL',
    range: 'one or more nats:// or tls:// URLs, separated by commas',
    byDefault: null,
    meaning: 'Message broker over which GPU servers are reached; unset: none',
    read: brokerUrls,
  },
  defaultOvercommitPercent: {
    name: 'CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT',
    range: describeRule(OVERCOMMIT_RULE),
    byDefault: String(DEFAULT_CONFIG.default_vram_overcommit_percent),
    meaning: 'Global VRAM overcommit, until the first PUT /api/v1/config is stored; from then on the stored value holds',
    read: (text) => (OVERCOMMIT_RULE.kind === 'integer' ? integerIn(text, OVERCOMMIT_RULE.min, OVERCOMMIT_RULE.max) : undefined),
  },
  logLevel: {
    name: 'LOG_LEVEL',
    range: `one of ${LOG_LEVELS.join(', ')}`,
    byDefault: 'info',
    meaning: 'How much the log says',
    read: (text) => LOG_LEVELS.find((level) => level === text),
  },
} as const satisfies Readonly<Record<string, EnvironmentVariable<unknown>>>

/** Exactly written: no sign, no leading zero, no fraction, no blank. */
function integerIn(text: string, min: number, max: number): number | undefined {
  const value = /^(?:0|[1-9]\d{0,8})$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

const HOST_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/

/** A name whose last part is a number would be a mistyped IPv4 address. */
function isHost(text: string): boolean {
  if (isIP(text) !== 0) return true
  const labels = text.split('.')
  return text.length <= 253 && labels.every((label) => HOST_LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '')
}

function brokerUrls(text: string): readonly string[] | undefined {
  const urls = text.split(',').map((url) => url.trim())
  return urls.every(isBrokerUrl) ? urls : undefined
}

function isBrokerUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'nats:' || url.protocol === 'tls:') && url.hostname !== ''
}
