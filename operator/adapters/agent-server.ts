/** Where the agents of the nodes report. */
import { type AgentAnswer, type AgentReport, checkAgentReport } from '../../protocol/agent-messages.ts'
import { CallerServer, type CallerServerOptions, Malformed } from './caller-server.ts'

export const AGENT_PATH = '/agent'
/** Common name in the certificate with which agents call. */
export const AGENT_CALLER = 'headroom-agent'

export interface AgentServerOptions extends Omit<
  CallerServerOptions,
  'routes' | 'caller' | 'maxConnections' | 'maxRequestBytes'
> {
  readonly reported: (report: AgentReport) => Promise<AgentAnswer | null>
}

const MAX_AGENTS = 5_000
/** 1,024 pods. */
export const MAX_AGENT_MESSAGE_BYTES = 2 * 1024 * 1024

/** Resolves once it listens. */
export function startAgentServer(options: AgentServerOptions): Promise<CallerServer> {
  const routes = new Map([
    [
      AGENT_PATH,
      (asked: unknown) => {
        const fault = checkAgentReport(asked)
        if (fault !== null) throw new Malformed(`report${fault}`)
        return options.reported(asked as AgentReport)
      },
    ],
  ])
  const limits = { maxConnections: MAX_AGENTS, maxRequestBytes: MAX_AGENT_MESSAGE_BYTES }
  return CallerServer.start({ ...options, ...limits, caller: AGENT_CALLER, routes })
}
