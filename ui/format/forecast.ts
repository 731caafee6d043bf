/** Texts for forecasts. Pure. */

/** Why there is no forecast, without the code and the advice for API clients; the page retries by itself. */
export function noForecastWords(because: string | null): string {
  const words = (because ?? 'there is no forecast')
    .replace(/^[A-Z_]+: /, '')
    .replace(/; try again in a few seconds.*$/, '')
  const sentence = words.charAt(0).toUpperCase() + words.slice(1)
  return sentence.endsWith('.') ? sentence : `${sentence}.`
}
