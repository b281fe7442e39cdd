/** What we read of an event of an HTTP API, payload format 2.0. */
export interface HttpEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly requestContext: { readonly domainName: string; readonly http: { readonly method: string } };
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
}

const bodyOf = ({ body, isBase64Encoded, requestContext }: HttpEvent): Buffer | undefined =>
  body === undefined || /^(?:GET|HEAD)$/.test(requestContext.http.method)
    ? undefined
    : Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8");

/** @see https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html */
export const httpHandler =
  (fetch: (request: Request) => Promise<Response>) =>
  async (event: HttpEvent): Promise<HttpAnswer> => {
    const { rawPath, rawQueryString, requestContext } = event;
    const body = bodyOf(event);
    const url = `https://${requestContext.domainName}${rawPath}${rawQueryString && `?${rawQueryString}`}`;
    const answer = await fetch(
      new Request(url, {
        method: requestContext.http.method,
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
      }),
    );
    return {
      statusCode: answer.status,
      headers: Object.fromEntries(answer.headers),
      body: await answer.text(),
    };
  };
