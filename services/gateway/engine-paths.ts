/**
 * Which paths of a task clients may call. Inference engines (vLLM, SGLang) have no users: every client that
 * reaches their port may put them to sleep or replace their weights. The lists are those of the proxy
 * (gpu-server/guard/proxy-http.c); test/unit/gateway-paths.test.ts compares them.
 */

/** The only paths of an engine that may be called, and what is below those of the second list. */
export const SERVED_PATHS: readonly string[] = [
  ...['/health', '/health_generate', '/ping', '/version', '/metrics', '/load', '/generate', '/encode'],
  ...['/classify', '/score', '/rerank', '/pooling', '/tokenize', '/detokenize', '/invocations'],
  ...['/get_model_info', '/model_info'],
]
export const SERVED_BELOW: readonly string[] = ['/v1/', '/v2/', '/inference/v1/']
/**
 * Paths that are never forwarded, for any task and in any part of a path. An engine may run without the swap
 * method `engine`.
 */
export const NEVER_CALLED: readonly string[] = [
  ...['sleep', 'wake_up', 'is_sleeping', 'release_memory_occupation', 'resume_memory_occupation'],
  ...['load_lora_adapter', 'unload_lora_adapter', 'load_lora_adapter_from_tensors', 'flush_cache'],
  ...['reset_prefix_cache', 'collective_rpc', 'pause', 'resume', 'is_paused', 'pause_generation'],
  ...['continue_generation', 'abort_request', 'abort_requests', 'update_weights', 'start_profile'],
  ...['stop_profile', 'server_info', 'get_server_info', 'shutdown'],
]

export type PathVerdict = 'pass' | 'forbidden' | 'malformed'

/** @param target path and query as they are sent to the task */
export function judgePath(target: string, isEngine: boolean): PathVerdict {
  const path = decoded(target.split('?', 1)[0] ?? '')
  if (path === null || hasDots(path)) return 'malformed'
  if (isEngine && (path.includes('//') || /[\s\\%\x7f]/.test(path))) return 'malformed'
  if (partsOf(path).some((part) => NEVER_CALLED.includes(part.toLowerCase()))) return 'forbidden'
  const isServed = SERVED_PATHS.includes(path) || SERVED_BELOW.some((start) => path.startsWith(start))
  return !isEngine || isServed ? 'pass' : 'forbidden'
}

/** Decoded once, as servers do; null: it cannot be decoded, or contains a control character. */
function decoded(path: string): string | null {
  try {
    const text = decodeURIComponent(path)
    return /[\x00-\x1f\x7f]/.test(text) ? null : text
  } catch {
    return null
  }
}

/** Without what follows a semicolon. */
function partsOf(path: string): readonly string[] {
  return path.split(/[/\\]/).map((part) => part.split(';', 1)[0] ?? '')
}

function hasDots(path: string): boolean {
  return partsOf(path).some((part) => part === '.' || part === '..')
}
