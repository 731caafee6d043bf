import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet from 'helmet'

/**
 * Headers for plain HTTP: no HSTS, opener policy or origin-agent cluster, which browsers ignore or misread
 * there. The policy lets the page load its own files and talk to its own server, and nothing else.
 */
const OF_PAGES = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      fontSrc: ["'self'"],
      connectSrc: ["'self'"],
      workerSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
    },
  },
  xFrameOptions: { action: 'deny' as const },
  strictTransportSecurity: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
}

/**
 * What a program reads is not a page: it may load nothing and be shown nowhere, and what only guards pages is
 * left out.
 */
const OF_DATA = {
  ...OF_PAGES,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
  xFrameOptions: false as const,
  referrerPolicy: false as const,
}

/**
 * The same on every answer, so they are made once: made for each they cost a seventh of what a small answer
 * costs (docs/decisions/0030).
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = headersOf(OF_PAGES)
export const DATA_HEADERS: Readonly<Record<string, string>> = {
  ...headersOf(OF_DATA),
  'cache-control': 'no-store',
}

function headersOf(options: Parameters<typeof helmet>[0]): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader: (name: string, value: string) => void (headers[name.toLowerCase()] = value),
    removeHeader: (name: string) => void delete headers[name.toLowerCase()],
  }
  helmet(options)({} as IncomingMessage, response as unknown as ServerResponse, (fault?: unknown) => {
    if (fault !== undefined) throw fault as Error
  })
  return headers
}
