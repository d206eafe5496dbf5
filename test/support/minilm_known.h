/* SPDX-License-Identifier: Apache-2.0 */
/* minilm_known.h - the first numbers of vectors that onnxruntime makes with the published float32 weights of
 * all-MiniLM-L6-v2. */
static const known minilm_known[] = {
    {"hello, world", {-0.056094f, 0.035543f, 0.004593f, 0.023866f, -0.049444f, -0.155141f, 0.065926f, 0.022491f}},
    {"The quick brown fox jumps over the lazy dog.",
     {0.043934f, 0.058934f, 0.048178f, 0.077548f, 0.026744f, -0.037630f, -0.002605f, -0.059943f}},
    {"int main(void) { return 0; }",
     {0.060021f, 0.071941f, -0.043801f, 0.009961f, -0.090129f, -0.044183f, 0.017094f, 0.061997f}},
    {"def parse_header(self, line: str) -> dict:",
     {-0.029337f, 0.115843f, 0.003132f, -0.012074f, -0.010261f, -0.103858f, 0.019522f, 0.031458f}},
    {"na\303\257ve caf\303\251 \304\260stanbul",
     {0.054402f, 0.002782f, -0.020523f, 0.078572f, -0.038331f, 0.023911f, 0.068327f, -0.119561f}},
    {"\344\270\255\346\226\207\345\255\227\347\254\246\346\265\213\350\257\225 mixed",
     {-0.010639f, 0.057880f, 0.058332f, 0.013999f, 0.002053f, 0.060411f, 0.086070f, -0.035288f}},
    {"[SEP] inside [CLS] text",
     {-0.000909f, 0.117368f, -0.031985f, 0.020855f, -0.002293f, 0.000624f, 0.111314f, 0.029769f}},
    {"", {-0.118838f, 0.048299f, -0.002548f, -0.011011f, 0.051951f, 0.010292f, 0.115433f, 0.000701f}},
    {"How are segments merged in the background\077",
     {0.013897f, 0.022348f, -0.038112f, -0.065215f, 0.017635f, -0.012805f, 0.004997f, 0.021667f}},
    {"SELECT id FROM records WHERE cursor > \077",
     {0.010666f, 0.043798f, 0.034416f, 0.022311f, -0.017180f, 0.042047f, 0.118674f, 0.007251f}},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaa tail",
     {0.016144f, -0.003487f, 0.074755f, -0.026416f, -0.020520f, -0.025662f, 0.145173f, 0.047073f}},
    {"emoji \360\237\230\200 and \342\200\213 zero width",
     {0.009460f, 0.010825f, 0.071343f, -0.001794f, -0.000841f, -0.088736f, 0.009894f, -0.006598f}},
};
